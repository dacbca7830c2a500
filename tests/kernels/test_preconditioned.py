"""Preconditioned steps with kernels of every kind of features, under every growth and loss."""

import pickle

import numpy as np
import pytest
from river import optim

from streamkernel import KernelClassifier, KernelRegressor, losses
from streamkernel.estimators.base import machine_of
from streamkernel.growth import CDSG, DSG, UDSG
from streamkernel.kernels import ArcCosine, ChiSquared, DotProduct, Gaussian, Laplacian, Polynomial, SkewedChiSquared

KERNELS = {
    "two numbers a draw": Laplacian(2.0),
    "one number": Polynomial(2),
    "steps": ArcCosine(0),
    "no bounds": ChiSquared(),
    "structured": Gaussian(structured=True),
    "sum": Gaussian(2.0) + 0.3 * DotProduct(),
    "product": Polynomial(2) * SkewedChiSquared(),
}
GROWTHS = [DSG(), UDSG(), CDSG(), CDSG(cap=2.0)]
LABELS = [
    None,
    losses.Log(),
    losses.SquaredHinge(),
    optim.losses.Hinge(),
]
NUMBERS = [
    None,
    optim.losses.Huber(),
    optim.losses.Absolute(),
    losses.Quantile(0.7),
    losses.EpsilonInsensitive(),
]


def _stream(n):
    """Numbers from 0 up, of which `a` alone matters."""
    rng = np.random.default_rng(4)
    a, b = rng.uniform(0, 2, size=(2, n)).tolist()
    return [{"a": x, "b": y, "one": 1.0} for x, y in zip(a, b, strict=True)], a


def _learns_and_is_one_stream(model, xs, ys, error):
    """Learn at once; the second half is better than a constant, and cuts and a pickle leave no trace."""
    made = model.advance(xs, ys)
    assert np.isfinite(made.losses).all()
    half = len(xs) // 2
    assert error(made.predictions[half:], ys[half:]) < 0.7
    cut = model.clone()
    for start in range(0, len(xs), 57):
        cut.advance(xs[start : start + 57], ys[start : start + 57])
        cut = pickle.loads(pickle.dumps(cut))
    assert cut.state_digest() == model.state_digest()


def _share_wrong(predicted, ys):
    """Errors, as a share of those of one label for all."""
    return np.mean([p != y for p, y in zip(predicted, ys, strict=True)]) / min(np.mean(ys), 1 - np.mean(ys))


def _share_absolute(predicted, ys):
    """The mean absolute error, as a share of the deviation from the median."""
    return np.mean(np.abs(np.array(predicted) - ys)) / np.mean(np.abs(np.array(ys) - np.median(ys)))


@pytest.mark.parametrize("kind", KERNELS)
def test_every_kernel_is_preconditioned_under_every_growth(kind):
    xs, a = _stream(240)
    for growth, average in zip(GROWTHS, (False, True, False, True), strict=True):
        model = KernelRegressor(
            KERNELS[kind],
            growth=growth,
            batch_size=16,
            block_size=16,
            max_features=96,
            precondition=True,
            blocks_per_step=3,
            average=average,
            seed=1,
        )
        _learns_and_is_one_stream(model, xs, a, _share_absolute)
        assert (model.n_grown, model.n_grown + model.n_reused) == (6, 45)
        assert 0 < model.gamma_0 <= 0.3
        scale = machine_of(model).feature_scale
        assert scale.is_measured
        assert ("kappa" in model.__getstate__()) is not scale.is_bounded


@pytest.mark.parametrize("loss", LABELS, ids=lambda loss: type(loss).__name__)
def test_every_loss_of_labels_is_preconditioned(loss):
    xs, a = _stream(320)
    model = KernelClassifier(Gaussian(1.0) + DotProduct(), loss=loss, batch_size=16, precondition=True, seed=1)
    _learns_and_is_one_stream(model, xs, [x > 1 for x in a], _share_wrong)


@pytest.mark.parametrize("loss", NUMBERS, ids=lambda loss: type(loss).__name__)
def test_every_loss_of_numbers_is_preconditioned(loss):
    xs, a = _stream(320)
    model = KernelRegressor(Gaussian(1.0) + DotProduct(), loss=loss, batch_size=16, precondition=True, seed=1)
    _learns_and_is_one_stream(model, xs, a, _share_absolute)


def test_a_multiple_of_a_kernel_takes_the_same_preconditioned_steps():
    """The ridge is that of the features: how large a kernel is changes nothing."""
    xs, a = _stream(200)
    one, other = (
        KernelRegressor(k, growth=DSG(), regularization=0.0, batch_size=8, precondition=True, seed=1)
        for k in (Gaussian(1.0), 16 * Gaussian(1.0))
    )
    predicted = one.advance(xs, a).predictions
    np.testing.assert_allclose(other.advance(xs, a).predictions, predicted, rtol=1e-3, atol=1e-3)
