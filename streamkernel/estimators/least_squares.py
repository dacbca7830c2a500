"""Kernel classification and regression by least squares that learn a batch of any size in one step."""

from collections.abc import Sequence
from typing import Any

from river import base
from river.optim.losses import Squared

from streamkernel.batch.least_squares import LeastSquaresMachine, learn_least_squares_batch
from streamkernel.batch.rows import BatchRows, ScoredBatch, step_here
from streamkernel.estimators.arguments import head_columns
from streamkernel.estimators.base import AdvanceResult, StreamEstimator
from streamkernel.estimators.predictors import LabelPredictor, NumberPredictor
from streamkernel.kernels import Kernel
from streamkernel.losses import Softmax
from streamkernel.records.batches import Records
from streamkernel.records.classes import Classes
from streamkernel.records.targets import Numbers
from streamkernel.state import Array


class LeastSquaresEstimator(StreamEstimator):
    """The common part of the least-squares estimators, which learn from sums over records."""

    ridge: float
    drift_rates: tuple[float, ...]
    _machine: LeastSquaresMachine

    def _build(self, targets: Classes | Numbers) -> LeastSquaresMachine:
        """A fresh machine from the constructor's arguments."""
        inputs, columns = head_columns(self)
        return LeastSquaresMachine(inputs, targets, columns, float(self.ridge), self.drift_rates)

    def batch_step(self, X: Any, y: Any, w: Sequence[float] | None = None) -> AdvanceResult:
        """Predict the rows of a data frame or array, then learn all labeled rows by one update of rank n.

        The order of the rows changes only rounding. A sample of at most 2,048 rows, those with the smallest hashes,
        determines the moments of inputs and targets. The moments before the batch scale its rows, and the first batch
        uses its own. New columns and labels join in the order of their keys.

        The coefficients drift once, as much as for n single records. The mean losses of the batch set the weights of
        the experts and their temperatures, as if n records had these losses. After the first batch, experts that
        learned one half of its sample are judged by the other half. A batch of one row does the same as `learn_one`.

        Parameters
        ----------
        X, y, w
            As in `KernelClassifier.batch_step`.

        Returns
        -------
        The predictions of all rows, each made before the step, and their losses.

        Raises
        ------
        ValueError, TypeError
            A row, X or y is unusable. The batch is then not learned.

        Examples
        --------
        >>> import numpy as np
        >>> from streamkernel import KernelLeastSquaresRegressor
        >>> X = np.random.default_rng(1).normal(size=(4000, 2))
        >>> y = np.sin(X[:, 0]) * X[:, 1]
        >>> model = KernelLeastSquaresRegressor(seed=1)
        >>> first, second = (model.batch_step(X[:2000], y[:2000]), model.batch_step(X[2000:], y[2000:]))
        >>> bool(second.losses.mean() < first.losses.mean() / 5), model.n_steps, model.last_batch_size
        (True, 2, 2000)

        """
        with self._lock:
            return self._outcome(step_here(self, X, y, w))

    def _learn_batch(self, batch: BatchRows) -> ScoredBatch:
        return learn_least_squares_batch(self._machine, batch)

    @property
    def n_steps(self) -> int:
        """The number of steps so far: batches, and labeled records that came one by one."""
        return self._machine.n_steps

    @property
    def last_batch_size(self) -> int:
        """The number of labeled records in the last step; 0 before the first."""
        return self._machine.last_batch_size

    @property
    def bandwidth(self) -> float:
        """The kernel's length scale in use; 0 before the first record."""
        return self._machine.columns.bandwidth

    @property
    def expert_weights(self) -> dict[str, float]:
        """The weight of each expert in the prediction, by name. Empty before the first labeled record."""
        experts = self._machine.experts
        return dict(zip(experts.names, experts.weights.tolist(), strict=True)) if self.n_records else {}

    @property
    def memory_bytes(self) -> int:
        """Bytes of the experts' matrices."""
        return self._machine.experts.nbytes


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


class KernelLeastSquaresRegressor(LeastSquaresEstimator, NumberPredictor, base.MiniBatchRegressor):
    """A kernel regressor by recursive least squares that learns a batch of any size in one step.

    It works like `KernelLeastSquaresClassifier`, for numbers, and standardizes them internally. Without drift, the
    coefficients equal ridge regression on all records so far, for any division into batches.

    Parameters
    ----------
    ridge
        rho, the ridge regularization, at least 1e-9. Defaults to .03.
    kernel, n_features, drift_rates, standardize, max_inputs, seed
        As in `KernelLeastSquaresClassifier`.

    Examples
    --------
    >>> import pandas as pd
    >>> from river import datasets
    >>> from streamkernel import KernelLeastSquaresRegressor
    >>> model = KernelLeastSquaresRegressor(seed=1)
    >>> xs, ys = zip(*datasets.TrumpApproval())
    >>> for start in range(0, len(xs), 100):
    ...     outcome = model.batch_step(pd.DataFrame(xs[start : start + 100]), ys[start : start + 100])
    >>> sum(abs(a - b) for a, b in zip(outcome.predictions, ys[start:])) / len(ys[start:]) < 1
    True

    """

    def __init__(
        self,
        kernel: Kernel | None = None,
        n_features: int = 128,
        ridge: float = 0.03,
        drift_rates: tuple[float, ...] = (0.0, 1e-3, 3e-2),
        standardize: bool | None = None,
        max_inputs: int = 1_000,
        seed: int | None = None,
    ) -> None:
        self._keep(locals())
        self._targets = Numbers(Squared())
        self._machine = self._build(self._targets)
