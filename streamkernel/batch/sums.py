"""Sums over the learned rows of a batch, of which a step is made; those of its parts add up in float64."""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import ClassVar, Self

import numpy as np

from streamkernel.state import Array


@dataclass(frozen=True)
class Sums:
    """Sums over rows: each field is a number or an array that adds up, or of which the largest counts."""

    #: The fields of which the largest counts.
    largest: ClassVar[frozenset[str]] = frozenset()

    @classmethod
    def total(cls, parts: Sequence[Self]) -> Self:
        """The sums over the rows of all parts, of which there is at least one, added in this order."""
        total = {field.name: getattr(parts[0], field.name) for field in fields(cls)}
        for part in parts[1:]:
            for name, value in total.items():
                other = getattr(part, name)
                total[name] = np.maximum(value, other) if name in cls.largest else value + other
        return cls(**total)

    def __add__(self, other: Self) -> Self:
        return type(self).total([self, other])


@dataclass(frozen=True)
class BlockSums(Sums):
    """What a step asks of the features phi_i of a block."""

    gradient: Array  #: sum_i w_i g_i phi_i^T, float64 of shape (K, D)
    gram: Array  #: sum_i w_i phi_i phi_i^T, float64 of shape (D, D), upper triangle; (0, 0) where it is not asked for
    squares: float  #: sum_i w_i |phi_i|^2
    weight: float  #: sum_i w_i


#: What is asked of no block.
NO_BLOCK = BlockSums(np.zeros((0, 0)), np.zeros((0, 0)), 0.0, 0.0)


@dataclass(frozen=True)
class GradientSums(Sums):
    """What a step asks of the gradients g_i of its records, with weights w_i."""

    largest: ClassVar[frozenset[str]] = frozenset({"gradient_norm", "weight"})

    n: int  #: The records
    gradient: Array  #: sum_i w_i g_i, float64 of shape (K,)
    n_pulling: int  #: Records with w_i g_i that is not 0
    gradient_norm: float  #: The largest |w_i g_i|
    weight: float  #: The largest w_i
    observed: Array  #: What an encoder of targets that learns from scores asks for
    slope: float
    block: BlockSums = NO_BLOCK  #: The sums of a block that was foreseen; else `NO_BLOCK`


@dataclass(frozen=True)
class LeastSquaresSums(Sums):
    """What a step of least squares asks of the columns phi_i of its records, with targets y_i and weights w_i."""

    n: int  #: The records
    n_counted: int  #: Those of a weight above 0, of which all the others are
    gram: Array  #: sum_i w_i phi_i phi_i^T, float64 of shape (D, D), upper triangle
    heads: Array  #: sum_i w_i (y_i - W phi_i) phi_i^T of each head, float64 of shape (H, K, D)
    linear: Array  #: The same of each linear expert, of the last L columns, (E, K, L)
    tried: Array  #: The losses of each expert by each of the settings there are, (J, S)


def whole(upper: Array) -> Array:
    """A symmetric matrix by its upper triangle."""
    return np.asarray(np.triu(upper) + np.triu(upper, 1).T)
