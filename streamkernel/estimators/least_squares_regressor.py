"""Least squares regression by batches."""

from river import base
from river.optim.losses import Squared

from streamkernel.estimators.least_squares import LeastSquaresEstimator
from streamkernel.estimators.predictors import NumberPredictor
from streamkernel.kernels import Kernel
from streamkernel.records.targets import Numbers


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
