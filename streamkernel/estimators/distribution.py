"""River's normal distribution, as regressors predict it."""

from typing import TYPE_CHECKING

from streamkernel.state import Array

if TYPE_CHECKING:
    from river import proba

    from streamkernel.estimators.residual_gaussian import ResidualGaussian


def gaussian(mean: float, variance: float) -> "proba.Gaussian":
    """River's Gaussian of a mean and a variance.

    Examples
    --------
    >>> gaussian(1.0, 4.0)
    𝒩(μ=1.000, σ=2.000)

    """
    # Now, not above: it brings scipy.stats, which no process should wait for that asks for no distribution.
    from river import proba

    made: proba.Gaussian = proba.Gaussian._from_state(n=1, m=mean, var=variance, ddof=0)
    return made


def residual_gaussian(mean: float, variance: float, residuals: Array) -> "ResidualGaussian":
    """River's Gaussian, with the quantiles of a model's last errors, (n,).

    Examples
    --------
    >>> import numpy
    >>> made = residual_gaussian(1.0, 4.0, numpy.arange(-50.0, 51.0))
    >>> made, made.quantile(0.5)
    (𝒩(μ=1.000, σ=2.000), 1.0)

    """
    from streamkernel.estimators.residual_gaussian import ResidualGaussian

    made = ResidualGaussian._from_state(n=1, m=mean, var=variance, ddof=0)  # type: ignore[no-untyped-call]
    assert isinstance(made, ResidualGaussian)
    made._residuals = residuals
    return made
