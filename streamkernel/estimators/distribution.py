"""The normal distribution that a regressor predicts, as River has it."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from river import proba


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
