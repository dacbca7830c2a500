"""The interface of a growth policy: it maps the context of a mini-batch to the update of one block."""

import abc
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from river import base

from streamkernel.arguments import Representable
from streamkernel.compute.gaussians import mix64
from streamkernel.state import Array


@dataclass(frozen=True)
class GrowthContext:
    """The input of one growth decision: the terms of a mini-batch.

    Attributes
    ----------
    t
        The step's number, from 0.
    gamma
        The step size.
    n_blocks
        The number of old blocks.
    full
        Whether `max_features` forbids another block.
    mean_gradient
        gbar, float64 of shape (K,).
    beta
        The old blocks' gradient coefficients, float64 of shape (blocks, K). Empty for policies that keep none.
    variance
        The bound v of the variance term of (9).
    class_variance
        The same bound if the check runs class by class.
    limit
        A function from the number of a block to the longest step that its features allow.
    seed
        The machine's seed.

    """

    t: int
    gamma: float
    n_blocks: int
    full: bool
    mean_gradient: Array
    beta: Array
    variance: float
    class_variance: float
    limit: Callable[[int], float]
    seed: int

    def uniform_block(self) -> int:
        """Return an old block, drawn uniformly by the seed and the step's number."""
        word = int(mix64(mix64(np.uint64(self.seed)) ^ np.uint64(self.t)))
        return (word * self.n_blocks) >> 64


@dataclass(frozen=True)
class BlockUpdate:
    """The decision of a policy: the update of one block.

    Attributes
    ----------
    block
        The block to update. One past the last makes a new block.
    size
        The size of the step: one number for all outputs, or float64 of shape (K,).
    decay
        The step by which the coefficients decay.
    margin
        The margin of (9), right side minus left side. NaN if it was not checked.

    """

    block: int
    size: float | Array
    decay: float
    margin: float = float("nan")


class Growth(Representable, base.Base, abc.ABC):
    """The base class of growth policies, with no state except constructor arguments."""

    #: Whether the policy needs every block's gradient coefficient beta.
    keeps_beta = False

    @abc.abstractmethod
    def choose(self, context: GrowthContext) -> BlockUpdate:
        """Return the block to update and the size of the step."""


def new_block(context: GrowthContext) -> BlockUpdate:
    """Return a new block at the step size."""
    return BlockUpdate(context.n_blocks, context.gamma, context.gamma)


def uniform_block(context: GrowthContext) -> BlockUpdate:
    """Return an old block, picked uniformly, at the step size."""
    return BlockUpdate(context.uniform_block(), context.gamma, context.gamma)
