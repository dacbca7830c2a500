"""Least squares classification by batches."""

from typing import Any

from river import base

from streamkernel.estimators.least_squares import LeastSquaresEstimator
from streamkernel.estimators.predictors import LabelPredictor
from streamkernel.kernels import Kernel
from streamkernel.losses import Softmax
from streamkernel.records.batches import Records
from streamkernel.records.classes import Classes
from streamkernel.state import Array


class KernelLeastSquaresClassifier(LeastSquaresEstimator, LabelPredictor, base.MiniBatchClassifier):
    """A kernel classifier by recursive least squares that learns a batch of any size in one step.

    It has the parts of `AdaptiveKernelClassifier` that need only sums over records: recursive least squares on random
    features at three drift rates, and on the inputs alone at two. A temperature turns the scores of each into
    probabilities, and a mixture weighs them by their recent losses.

    `batch_step` learns all given rows at once, by an update of rank n. Any process can compute sums over its rows, for
    example the executors of a Spark job. There are no trees, neighbors, stacks, metric or lags. If records come one by
    one, `AdaptiveKernelClassifier` learns them better.

    Parameters
    ----------
    kernel
        `Gaussian`, `Laplacian`, `Cauchy`, `Matern`, a custom Fourier kernel, or sums, products and multiples of these.
        The factors of a sum are shares of `n_features`. None (the default) is `Gaussian()` with the bandwidth .7 sqrt(2
        d), for the d inputs of the first batch or record. That is about .7 of the median distance of standardized
        inputs.
    n_features
        F, the number of random frequencies, each with a cosine and a sine. Defaults to 128.
    ridge
        rho, the ridge regularization, at least 1e-9. Defaults to .1.
    drift_rates
        q, how fast the coefficients may drift, per record. There is one head for each rate, and each rate is given
        once. Defaults to 0, .001 and .03.
    standardize
        Whether to center and scale numbers by running moments. None (the default) follows the kernel.
    max_inputs
        The largest number of inputs. The model ignores and counts all others. Defaults to 1,000.
    max_classes
        The largest number of classes. The model only predicts records of other classes, and counts them. Defaults to
        1,000.
    seed
        The seed of the random features. None (the default) draws one.

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
        self._keep(locals())
        self._targets = Classes(Softmax(), max_classes)
        self._machine = self._build(self._targets)

    def _distribution_of(self, x: dict[Any, Any]) -> tuple[list[Any], list[float]]:
        return self._targets.labels, self._machine.predict_one(x)[0].tolist()

    def _predicted_probabilities(self, xs: Records) -> tuple[list[Any], Array]:
        return self.classes, self._machine.predict(xs)
