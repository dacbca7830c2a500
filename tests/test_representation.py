"""What an estimator and its parts are shown as."""

import pytest
from river import optim, preprocessing
from river.optim.losses import Huber, RegressionLoss

from streamkernel import (
    AdaptiveKernelClassifier,
    AdaptiveKernelRegressor,
    KernelClassifier,
    KernelLeastSquaresClassifier,
    KernelLeastSquaresRegressor,
    KernelRegressor,
    losses,
)
from streamkernel.growth import CDSG, DSG, UDSG
from streamkernel.kernels import Gaussian


class Tilted(RegressionLoss):
    """A loss of the user's, which takes nothing from us."""

    def __init__(self, slope=2.0):
        self.slope = slope

    def __call__(self, y_true, y_pred):
        return self.slope * (y_pred - y_true) ** 2

    def gradient(self, y_true, y_pred):
        return 2 * self.slope * (y_pred - y_true)


@pytest.mark.parametrize(
    ("component", "shown"),
    [
        (Gaussian(), "Gaussian()"),
        (Gaussian(bandwidth=2.0), "Gaussian(bandwidth=2.0)"),
        (Gaussian(bandwidth=1, structured=True), "Gaussian(bandwidth=1, structured=True)"),
        (CDSG(), "CDSG(cap=1.0)"),
        (CDSG(cap=2.0), "CDSG(cap=2.0)"),
        (DSG(), "DSG()"),
        (UDSG(reuse=3), "UDSG(grow=1, reuse=3)"),
        (losses.Softmax(), "Softmax()"),
        (losses.Log(), "Log()"),
        (losses.SquaredHinge(), "SquaredHinge()"),
        (losses.Quantile(alpha=0.9), "Quantile(alpha=0.9)"),
        (losses.EpsilonInsensitive(), "EpsilonInsensitive(eps=0.1)"),
    ],
)
def test_a_component_reads_like_the_call_that_makes_it(component, shown):
    assert repr(component) == str(component) == shown


def test_an_estimator_shows_its_components_as_calls():
    model = KernelRegressor(
        Gaussian(bandwidth=2.0), Huber(epsilon=1.5), CDSG(), step=optim.schedulers.Constant(0.1), seed=1
    )
    assert str(model) == "KernelRegressor"
    assert repr(model).startswith("KernelRegressor (\n  kernel=Gaussian(bandwidth=2.0)\n  loss=Huber(epsilon=1.5)\n")
    assert "  growth=CDSG(cap=1.0)\n" in repr(model)
    assert "  step=Constant(learning_rate=0.1)\n" in repr(model)
    assert "  loss=Tilted(slope=2.0)\n" in repr(KernelRegressor(loss=Tilted()))


@pytest.mark.parametrize(
    "kind",
    [
        AdaptiveKernelClassifier,
        AdaptiveKernelRegressor,
        KernelClassifier,
        KernelLeastSquaresClassifier,
        KernelLeastSquaresRegressor,
        KernelRegressor,
    ],
)
def test_html_shows_what_repr_shows(kind):
    model = kind(kernel=Gaussian(bandwidth=2.0), seed=1)
    assert repr(model) in model._repr_html_()
    pipeline = preprocessing.StandardScaler() | model
    assert "kernel=Gaussian(bandwidth=2.0)" in repr(pipeline)
    assert "kernel=Gaussian(bandwidth=2.0)" in pipeline._repr_html_()
