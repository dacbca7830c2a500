"""River's normal distribution, as regressors predict it, with the quantiles of a model's last errors.

Its import brings scipy.stats, which no process should wait for that asks for no distribution: regressors import it when
the first one is asked for.
"""

from statistics import NormalDist

import numpy as np
from river import proba

from streamkernel.state import Array, excerpt, real

#: From this number of errors on, they give the quantiles; before, the Gaussian does.
ENOUGH = 100


class ResidualGaussian(proba.Gaussian):
    """A Gaussian around a prediction, with quantiles from the last errors.

    Density, `cdf` and samples are the Gaussian's, and `quantile` is not the inverse of `cdf`. Errors are seldom normal.
    A band between two quantiles of the errors covers its nominal share of the targets, and is often narrower.
    """

    _residuals: Array = np.zeros(0)

    def quantile(self, p: float) -> float:
        """Return the quantile p of the target: the prediction plus that quantile of the last errors.

        Parameters
        ----------
        p
            Between 0 and 1, both excluded. There are at most 500 errors, and no quantile lies beyond the smallest or
            the largest.

        Raises
        ------
        ValueError
            p is not a number between 0 and 1.

        Examples
        --------
        >>> from streamkernel import AdaptiveKernelRegressor
        >>> model = AdaptiveKernelRegressor(seed=1)
        >>> for i in range(300):
        ...     model.learn_one({"a": i % 7}, (i % 7) ** 2 + (i % 11 == 0))
        >>> band = model.predict_one({"a": 3}, with_dist=True)
        >>> band.quantile(0.05) < 9 < band.quantile(0.95)
        True

        """
        share = real(p)
        if share is None or not 0 < share < 1:
            raise ValueError(f"p must be a number between 0 and 1, both excluded, got {excerpt(p)}")
        if len(self._residuals) < ENOUGH:
            return float(self.mu + self.sigma * NormalDist().inv_cdf(share))
        # The i-th of n errors is the quantile at i / (n + 1): so the next one is below it as often as that.
        return float(self.mu + np.quantile(self._residuals, share, method="weibull"))


def gaussian(mean: float, variance: float) -> proba.Gaussian:
    """River's Gaussian of a mean and a variance.

    Examples
    --------
    >>> gaussian(1.0, 4.0)
    𝒩(μ=1.000, σ=2.000)

    """
    made: proba.Gaussian = proba.Gaussian._from_state(n=1, m=mean, var=variance, ddof=0)
    return made


def residual_gaussian(mean: float, variance: float, residuals: Array) -> ResidualGaussian:
    """River's Gaussian, with the quantiles of a model's last errors, (n,).

    Examples
    --------
    >>> import numpy
    >>> made = residual_gaussian(1.0, 4.0, numpy.arange(-50.0, 51.0))
    >>> made, made.quantile(0.5)
    (𝒩(μ=1.000, σ=2.000), 1.0)

    """
    made = ResidualGaussian._from_state(n=1, m=mean, var=variance, ddof=0)  # type: ignore[no-untyped-call]
    assert isinstance(made, ResidualGaussian)
    made._residuals = residuals
    return made
