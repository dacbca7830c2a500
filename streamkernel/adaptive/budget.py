"""A budget of bytes for a core: the sizes of its parts, chosen so that they fit.

They are chosen for the inputs and classes that there are at the first labeled record, or two classes, and again when
more come than there is room for: then for half as many again, so that this becomes rare. What is chosen depends on the
stream alone, not on how it is cut into calls.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from streamkernel.adaptive.forest import TreeEnsembles
from streamkernel.adaptive.heads import LeastSquaresHeads
from streamkernel.fields import state_mismatch
from streamkernel.state import State

if TYPE_CHECKING:
    from streamkernel.adaptive.core import AdaptiveCore

#: What a state takes in addition to the arrays of experts: altogether, for each input, and for each class.
_BESIDE, _PER_INPUT, _PER_CLASS = 6_144, 200, 96
#: Shares of the rest that the heads may take, and the trees; the memory takes what is left over.
_HEADS, _TREES = 0.5, 0.3
#: Of the frequencies where bytes do not matter.
_FEATURES = (1, 3 / 4, 1 / 2, 3 / 8, 1 / 4, 3 / 16, 1 / 8, 1 / 16, 1 / 32)
#: With fewer frequencies than this share, rather fewer heads.
_ENOUGH = 1 / 4
#: Of the trees and of their window.
_ENSEMBLES = ((1, 1), (1, 1 / 2), (1, 1 / 4), (1 / 2, 1 / 2), (1 / 2, 1 / 4), (1 / 2, 1 / 8), (0, 0))
#: Records of which neighbors are worth asking, at least.
_FEWEST = 20
#: As an estimate may leave out what a part takes: shares of the budget to try with, until what is made fits.
_TRIED = (1, 0.9, 0.8, 0.65, 0.5, 0.35, 0.2, 0.1, 0.0)


class Parts(NamedTuple):
    """What there is room for, and the sizes of the parts as the estimators call them."""

    n_inputs: int
    n_outputs: int
    n_features: int
    n_heads: int
    n_trees: int
    tree_window: int
    memory: int
    buffer_size: int


@dataclass(eq=False)
class Budget:
    """What a core may take, and cores that take no more."""

    n_bytes: int  #: Of the experts in memory, and of the state when it is saved
    most: Parts  #: The sizes where bytes do not matter, but for the inputs and outputs: the fewest there is room for
    make: Callable[[Parts], "AdaptiveCore"]  #: A fresh core of the sizes given

    def core(self, n_inputs: int, n_outputs: int, n_first: int) -> "AdaptiveCore":
        """Return a fresh core that fits this number of inputs and outputs, or the smallest one.

        It will begin with the first `n_first` of the inputs, and the others come late.
        """
        n_inputs, n_outputs = max(n_inputs, self.most.n_inputs), max(n_outputs, self.most.n_outputs)
        n_ensembles = self.make(self.most).experts.n_ensembles
        for share in _TRIED:
            parts = self._chosen(int(share * self.n_bytes), n_inputs, n_outputs, n_first, n_ensembles)
            core = self.make(parts)
            core.begin(n_first, n_outputs)
            core.widen(n_inputs)
            if core.experts.most_bytes + _beside(n_inputs, n_outputs) <= self.n_bytes:
                break
        return self._with(parts)

    def core_of(self, state: State) -> "AdaptiveCore":
        """A fresh core of the sizes that a state was saved with; ValueError where they are none."""
        sizes = state.get("parts")
        if not isinstance(sizes, np.ndarray) or sizes.dtype != np.int64 or sizes.shape != (len(Parts._fields),):
            raise state_mismatch("parts")
        parts = Parts(*sizes.tolist())
        least = Parts(0, 0, 1, 1, 0, 1, 0, 1)
        bounds = zip(parts[2:], least[2:], self.most[2:], strict=True)
        if min(parts) < 0 or not all(small <= own <= large for own, small, large in bounds):
            raise state_mismatch("parts")
        return self._with(parts)

    def _with(self, parts: Parts) -> "AdaptiveCore":
        core = self.make(parts)
        core.budget, core.parts = self, parts
        return core

    def _chosen(self, n_bytes: int, n_inputs: int, n_outputs: int, n_first: int, n_ensembles: int) -> Parts:
        """The sizes by what each part takes, about."""
        most, d, K = self.most, n_inputs, n_outputs
        left = n_bytes - _beside(d, K)
        for n_features, n_heads in self._heads():
            linear = min(d, 2 * n_features) if n_first <= 2 * n_features else 0
            heads = LeastSquaresHeads(1.0, tuple(range(n_heads)))
            heads.begin(2 * n_features + 1 + linear, K)
            # Twice: others are learned for each new metric.
            taken = 2 * max(heads.nbytes, heads.state_bytes) + 16 * (linear + 1) * (linear + 1 + K)
            if taken <= _HEADS * left:
                break
        trees = TreeEnsembles(n_ensembles, 0, 1)
        for of_trees, of_window in _ENSEMBLES:
            n_trees, window = int(of_trees * most.n_trees), max(int(of_window * most.tree_window), 1)
            trees = TreeEnsembles(n_ensembles, n_trees, window)
            trees.begin(d, K)
            if trees.nbytes <= _TREES * left:
                break
        # A record: its inputs; target, weight, residual; a distance.
        n = max((left - taken - trees.nbytes) // (4 * d + 28), 1)
        memory = min(most.memory, n) if n >= _FEWEST else 0
        return Parts(d, K, n_features, n_heads, n_trees, window, memory, min(most.buffer_size, n))

    def _heads(self) -> list[tuple[int, int]]:
        """Numbers of frequencies and heads, in the order in which they are tried."""
        F, H = self.most.n_features, self.most.n_heads
        sizes = [max(int(share * F), 1) for share in _FEATURES]
        enough = [n for n, share in zip(sizes, _FEATURES, strict=True) if share >= _ENOUGH]
        return [(n, h) for h in range(H, 0, -1) for n in enough] + [(n, 1) for n in sizes[len(enough) :]]


def middle(rates: Sequence[float], n: int) -> tuple[float, ...]:
    """The n drift rates in the middle, in their order: the middle one serves most streams."""
    nearest = sorted(range(len(rates)), key=lambda i: abs(i - (len(rates) - 1) / 2))
    return tuple(rates[i] for i in sorted(nearest[:n]))


def _beside(n_inputs: int, n_outputs: int) -> int:
    return _BESIDE + _PER_INPUT * n_inputs + _PER_CLASS * n_outputs


def with_room(n_inputs: int, n_outputs: int, before: Parts | None) -> tuple[int, int]:
    """The inputs and outputs to choose parts for: half as many again where there was not room enough before."""
    d, K = n_inputs, n_outputs
    if before is not None:
        d = max(d, before.n_inputs + before.n_inputs // 2) if n_inputs > before.n_inputs else before.n_inputs
        K = max(K, before.n_outputs + before.n_outputs // 2) if n_outputs > before.n_outputs else before.n_outputs
    return d, K
