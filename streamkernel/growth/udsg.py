"""Unchecked reuse of old blocks: some steps draw a new block, some update an old one."""

from streamkernel.arguments import require_whole
from streamkernel.growth.base import BlockUpdate, Growth, GrowthContext, new_block, uniform_block


class UDSG(Growth):
    """Draw new blocks in `grow` steps, then pick an old block uniformly in `reuse` steps, in turn.

    Parameters
    ----------
    grow
        Steps with a new block, at least 1. Defaults to 1.
    reuse
        Steps with an old block, at least 0. Defaults to 1.

    Examples
    --------
    >>> from streamkernel.growth import UDSG
    >>> UDSG(reuse=3)
    UDSG(grow=1, reuse=3)

    References
    ----------
    [^1]: Li and Poczos, "Utilize old coordinates: faster doubly stochastic gradients for kernel methods", UDSG.

    """

    def __init__(self, grow: int = 1, reuse: int = 1) -> None:
        for name, value, least in (("grow", grow, 1), ("reuse", reuse, 0)):
            require_whole(name, value, least)
        self.grow = grow
        self.reuse = reuse

    def choose(self, context: GrowthContext) -> BlockUpdate:
        revisits = context.t % (self.grow + self.reuse) >= self.grow
        if context.full or (revisits and context.n_blocks):
            return uniform_block(context)
        return new_block(context)
