"""The growth policy: from the context of a mini-batch to the update of one block."""

import abc
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from river import base

from streamkernel.compute.gaussians import mix64
from streamkernel.representation import Component
from streamkernel.state import Array


@dataclass(frozen=True)
class GrowthContext:
    """The context of one growth decision: a mini-batch, as the policy sees it.

    Attributes
    ----------
    t
        The step's number, from 0.
    gamma
        The step size.
    n_blocks
        Old blocks.
    full
        Whether `max_features` forbids another block.
    mean_gradient
        gbar, float64 of shape (K,).
    beta
        The old blocks' gradient coefficients, float64 of shape (blocks, K); empty for policies that keep none.
    variance
        The bound v of the variance term of (9).
    class_variance
        The same where every class is checked on its own.
    limit
        The longest step that the block of a given number may take for its features' sake.
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
        """An old block, uniformly: a function of the seed and the step's number."""
        word = int(mix64(mix64(np.uint64(self.seed)) ^ np.uint64(self.t)))
        return (word * self.n_blocks) >> 64


@dataclass(frozen=True)
class BlockUpdate:
    """The update of one block that a policy chose.

    Attributes
    ----------
    block
        The block to touch; one past the last makes a new one.
    size
        How far: one step for all outputs, or float64 of shape (K,).
    decay
        The step by which the coefficients decay.
    margin
        By how much (9) held, right side minus left; NaN where it was not asked for.

    """

    block: int
    size: float | Array
    decay: float
    margin: float = float("nan")


class Growth(Component, base.Base, abc.ABC):
    """A policy: its constructor arguments and nothing else."""

    #: Whether the policy needs every block's gradient coefficient beta.
    keeps_beta = False

    @abc.abstractmethod
    def choose(self, context: GrowthContext) -> BlockUpdate:
        """The block to touch and the step to take."""


def new_block(context: GrowthContext) -> BlockUpdate:
    """A new block at the step size."""
    return BlockUpdate(context.n_blocks, context.gamma, context.gamma)


def uniform_block(context: GrowthContext) -> BlockUpdate:
    """An old block, picked uniformly, at the step size."""
    return BlockUpdate(context.uniform_block(), context.gamma, context.gamma)
