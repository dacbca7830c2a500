"""The default step sizes of novelty detection, which make f a mean over all records so far."""

from river.optim.base import Scheduler

from streamkernel.losses import NoveltyHinge


class OneClassStep(Scheduler):
    """A schedule of step sizes gamma_t = 1 / (nu (t + t0)) of a machine with the regularisation nu.

    The decay of a step is 1 / (t + t0), and f the mean of the kernels at all records that were below the threshold.
    t0 = 10 + 1 / nu is about as many mini-batches as it takes to see one such record each: the first steps are no
    longer than what f becomes.

    Parameters
    ----------
    nu
        The share of records to be flagged, in (0, 1].

    Raises
    ------
    ValueError
        `nu` is not in (0, 1].

    Examples
    --------
    >>> from streamkernel.growth import OneClassStep
    >>> OneClassStep(nu=0.1).get(0)
    0.5

    """

    def __init__(self, nu: float) -> None:
        self.nu = NoveltyHinge(nu).nu  # of the same shares

    def get(self, t: int) -> float:
        return 1.0 / (self.nu * (t + 10.0) + 1.0)
