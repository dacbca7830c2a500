"""Least squares classification by batches."""

from typing import Any

from river import base

from streamkernel.estimators.label_predictor import LabelPredictor
from streamkernel.estimators.least_squares import LeastSquaresEstimator
from streamkernel.kernels import Kernel
from streamkernel.losses import Softmax
from streamkernel.records.batches import Records
from streamkernel.records.classes import Classes
from streamkernel.state import Array


class KernelLeastSquaresClassifier(LeastSquaresEstimator, LabelPredictor, base.MiniBatchClassifier):
    """A kernel classifier by recursive least squares, of which a batch is one step whatever its size.

    What `AdaptiveKernelClassifier` has that is made of sums over records: recursive least squares on random features at
    three drift rates, and on the inputs alone at two, whose scores become probabilities by a temperature each, mixed by
    how well each did lately. `batch_step` learns all rows given at once, by an update of rank n, and sums over rows may
    be taken anywhere, as by the executors of a Spark job. Trees, neighbours, stacks, a metric and lags are not among
    it: records that come one by one are better learnt by `AdaptiveKernelClassifier`.

    Parameters
    ----------
    kernel
        `Gaussian`, `Laplacian`, `Cauchy`, `Matern`, a Fourier kernel of your own, or sums, products and multiples of
        these, whose factors are shares of `n_features`. None (the default) is `Gaussian()`, whose bandwidth is .7
        sqrt(2 d) of the d inputs of the first batch, or record: about .7 of the median distance of standardised ones.
    n_features
        F, random frequencies, each a cosine and a sine. Defaults to 128.
    ridge
        rho, at least 1e-9. Defaults to .1.
    drift_rates
        q, how fast the coefficients may drift a record; one head a rate, each rate once. Defaults to 0, .001 and .03.
    standardize
        Whether numbers are centred and scaled by running moments. None (the default) is what the kernel asks for.
    max_inputs
        Inputs past this number are ignored and counted. Defaults to 1,000.
    max_classes
        Records of classes past this number are predicted only, and counted. Defaults to 1,000.
    seed
        The stream of random features. None (the default) draws one.

    Raises
    ------
    ValueError
        An argument is out of its range.

    Examples
    --------
    >>> import pandas as pd
    >>> from river import datasets
    >>> from streamkernel import KernelLeastSquaresClassifier
    >>> model = KernelLeastSquaresClassifier(seed=1)
    >>> xs, ys = zip(*datasets.Phishing())
    >>> for start in range(0, len(xs), 250):
    ...     outcome = model.batch_step(pd.DataFrame(xs[start : start + 250]), ys[start : start + 250])
    >>> sum(a == b for a, b in zip(outcome.predictions, ys[start:])) / len(ys[start:]) > 0.85
    True

    References
    ----------
    [^1]: Rahimi and Recht, "Random features for large-scale kernel machines", 2007.
    [^2]: Herbster and Warmuth, "Tracking the best expert", 1998.

    """

    _targets: Classes

    def __init__(
        self,
        kernel: Kernel | None = None,
        n_features: int = 128,
        ridge: float = 0.1,
        drift_rates: tuple[float, ...] = (0.0, 1e-3, 3e-2),
        standardize: bool | None = None,
        max_inputs: int = 1_000,
        max_classes: int = 1_000,
        seed: int | None = None,
    ) -> None:
        self.kernel = kernel
        self.n_features = n_features
        self.ridge = ridge
        self.drift_rates = drift_rates
        self.standardize = standardize
        self.max_inputs = max_inputs
        self.max_classes = max_classes
        self.seed = seed
        self._at_least("max_classes", 2)
        self._targets = Classes(Softmax(), max_classes)
        self._machine = self._build(self._targets)

    def _distribution_of(self, x: dict[Any, Any]) -> tuple[list[Any], list[float]]:
        return self._targets.labels, self._machine.predict_one(x)[0].tolist()

    def _predicted_probabilities(self, xs: Records) -> tuple[list[Any], Array]:
        return self.classes, self._machine.predict(xs)
