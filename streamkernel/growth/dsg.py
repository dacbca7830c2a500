"""Doubly stochastic gradients: a new block with every step."""

from streamkernel.growth.base import BlockUpdate, Growth, GrowthContext, new_block, uniform_block


class DSG(Growth):
    """Draw a new block of features at every step; at `max_features`, pick an old one uniformly.

    Examples
    --------
    >>> from streamkernel.growth import DSG
    >>> DSG()
    DSG()

    References
    ----------
    [^1]: Dai et al., "Scalable kernel methods via doubly stochastic gradients", 2014, algorithm 1.

    """

    def choose(self, context: GrowthContext) -> BlockUpdate:
        return uniform_block(context) if context.full else new_block(context)
