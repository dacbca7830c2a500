"""What a growth policy sees of a step, and what it answers."""

import abc
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from river import base

from streamkernel.compute.gaussians import mix64
from streamkernel.state import Array


@dataclass(frozen=True)
class Situation:
    """One mini-batch, as a policy sees it.

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
class Step:
    """What a step does.

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


class Growth(base.Base, abc.ABC):
    """A policy: its constructor arguments and nothing else."""

    #: Whether the policy needs every block's gradient coefficient beta.
    keeps_beta = False

    @abc.abstractmethod
    def choose(self, situation: Situation) -> Step:
        """The block to touch and the step to take."""


def new_block(situation: Situation) -> Step:
    """A new block at the step size."""
    return Step(situation.n_blocks, situation.gamma, situation.gamma)


def uniform_block(situation: Situation) -> Step:
    """An old block, picked uniformly, at the step size."""
    return Step(situation.uniform_block(), situation.gamma, situation.gamma)
