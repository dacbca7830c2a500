"""Least squares regression by batches."""

from river import base
from river.optim.losses import Squared

from streamkernel.estimators.least_squares import LeastSquaresEstimator
from streamkernel.estimators.number_predictor import NumberPredictor
from streamkernel.kernels import Kernel
from streamkernel.records.numbers import Numbers


class KernelLeastSquaresRegressor(LeastSquaresEstimator, NumberPredictor, base.MiniBatchRegressor):
    """A kernel regressor by recursive least squares, of which a batch is one step whatever its size.

    As `KernelLeastSquaresClassifier`, for numbers, which are standardised inside. Without drift, coefficients are those
    of ridge regression on all records so far, however these were cut into batches.

    Parameters
    ----------
    kernel
        `Gaussian`, `Laplacian`, `Cauchy`, `Matern`, a Fourier kernel of your own, or sums, products and multiples of
        these, whose factors are shares of `n_features`. None (the default) is `Gaussian()`, whose bandwidth is .7
        sqrt(2 d) of the d inputs of the first batch, or record: about .7 of the median distance of standardised ones.
    n_features
        F, random frequencies, each a cosine and a sine. Defaults to 128.
    ridge
        rho, at least 1e-9. Defaults to .03.
    drift_rates
        q, how fast the coefficients may drift a record; one head a rate, each rate once. Defaults to 0, .001 and .03.
    standardize
        Whether numbers are centred and scaled by running moments. None (the default) is what the kernel asks for.
    max_inputs
        Inputs past this number are ignored and counted. Defaults to 1,000.
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
    >>> from streamkernel import KernelLeastSquaresRegressor
    >>> model = KernelLeastSquaresRegressor(seed=1)
    >>> xs, ys = zip(*datasets.TrumpApproval())
    >>> for start in range(0, len(xs), 100):
    ...     outcome = model.batch_step(pd.DataFrame(xs[start : start + 100]), ys[start : start + 100])
    >>> sum(abs(a - b) for a, b in zip(outcome.predictions, ys[start:])) / len(ys[start:]) < 1
    True

    References
    ----------
    [^1]: Rahimi and Recht, "Random features for large-scale kernel machines", 2007.
    [^2]: Herbster and Warmuth, "Tracking the best expert", 1998.

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
        self.kernel = kernel
        self.n_features = n_features
        self.ridge = ridge
        self.drift_rates = drift_rates
        self.standardize = standardize
        self.max_inputs = max_inputs
        self.seed = seed
        self._targets = Numbers(Squared())
        self._machine = self._build(self._targets)
