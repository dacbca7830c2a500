"""The default step sizes of novelty detection, which make f a mean over all records so far."""

from river.optim.base import Scheduler

from streamkernel.losses import NoveltyHinge


class OneClassStep(Scheduler):
    """The default step sizes of novelty detection, gamma_t = 1 / (nu (t + t0)), for a regularization nu.

    The decay of a step is 1 / (t + t0), so f is the mean of the kernels at all records below the threshold. t0 = 10 + 1
    / nu is about the number of mini-batches needed to see one such record. So the first steps do not exceed the final
    size of f.

    Parameters
    ----------
    nu
        The share of records to flag, in (0, 1].

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
