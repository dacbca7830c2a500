"""Structured orthogonal random features: stacks of Walsh-Hadamard transforms, for groups of inputs in their order."""

import math

import numpy as np

from streamkernel.compute.features import SINE
from streamkernel.compute.lanes import LANES
from streamkernel.compute.structured import PART, Groups, draw_norms, structured_features, structured_scores
from streamkernel.fields import state_mismatch, whole
from streamkernel.kernels.arguments import usable
from streamkernel.state import Array, State

#: Sizes of groups of inputs.
SMALLEST, LARGEST = 32, 4096

_SINE = SINE[np.dtype("float32")]
# Groups grow to 4,096 inputs, so that there are never as many.
_NO_NORMS = np.zeros((4096, 0), np.float32)


class Stacks:
    """Structured orthogonal random frequencies in float32, drawn whenever they are used.

    The first group holds the inputs of the first rows, and some more up to a power of two; those that come later begin
    another group, as large as all before, up to 4,096. Earlier features never change by it.

    - block_size: F, the frequencies of a block.
    - cache_bytes: The most bytes of norms cached; those of other features are drawn whenever they are used.
    - seed: The seed of the frequencies, an unsigned 64-bit number.
    - first_size: Inputs of the first group; 0 before it is chosen.
    """

    def __init__(self, block_size: int, cache_bytes: int, seed: int) -> None:
        self.block_size = block_size
        self.cache_bytes = cache_bytes
        self.seed = np.uint64(seed)
        self.first_size = 0
        self._norms = np.zeros((0, 0), np.float32)

    @property
    def nbytes(self) -> int:
        """Bytes of the cached norms."""
        return int(self._norms.nbytes)

    def begin(self, X: Array) -> None:
        """Fix the size of the first group by the last column of X, shape (n, d), that is not 0 in all rows."""
        if not self.first_size:
            occupied = np.flatnonzero(X.any(axis=0))
            n = int(occupied[-1]) + 1 if len(occupied) else 1
            self.first_size = min(max(1 << (n - 1).bit_length(), SMALLEST), LARGEST)

    def groups(self, n_inputs: int) -> Groups:
        """The first columns and sizes of the groups of the first `n_inputs` inputs."""
        starts, sizes = [0], [self.first_size]
        while starts[-1] + sizes[-1] < n_inputs:
            starts.append(starts[-1] + sizes[-1])
            sizes.append(min(starts[-1], LARGEST))
        return Groups(np.array(starts), np.array(sizes))

    def add_scores(
        self,
        X: Array,
        keys: Array,  # noqa: ARG002 - as `Drawn` has it, which finds inputs by their keys
        extra_keys: Array,
        bandwidth: float,
        alpha: Array,
        n_features: int,
        total: Array,
    ) -> None:
        """Add the sum of the first `n_features` times their coefficients to `total`, each row as if it were alone.

        Arguments are those of `Drawn.add_scores`; the columns of X are in the order of `Rows.in_order`.
        """
        groups = self.groups(X.shape[1])
        scale, width = _turns(bandwidth), _width(groups)
        # What only these rows bring may ask for one group more: that is no reason to drop what is kept.
        norms = _NO_NORMS[: len(groups.starts)] if len(extra_keys) else self._cached(groups, scale, n_features)
        structured_scores(X, groups, self.seed, scale, norms, width, alpha, n_features, _SINE, total)

    #: There is nothing faster for many rows.
    add_many = add_scores

    def features(self, block: int, X: Array, keys: Array, bandwidth: float, out: Array) -> None:
        """Fill `out`, shape (n, 2 F), with the features phi of a block: cosines, then sines, times F^-1/2."""
        groups = self.groups(len(keys))
        first, scale = block * self.block_size, _turns(bandwidth)
        norms = self._cached(groups, scale, 0)
        structured_features(X, groups, self.seed, scale, norms, _width(groups), first, _SINE, out)

    def state(self) -> State:
        """The fields of the state."""
        return {"first_group": self.first_size}

    def load_state(self, state: State) -> None:
        """Take the fields that `state` gave; ValueError where they do not fit."""
        self.first_size = whole(state, "first_group", most=LARGEST)
        if self.first_size and (self.first_size < SMALLEST or self.first_size.bit_count() > 1):
            raise state_mismatch("first_group")

    def _cached(self, groups: Groups, scale: float, n_features: int) -> Array:
        """The cached norms, (groups, m), m a multiple of the width and at least `n_features` if there is room."""
        n_groups, width = len(groups.starts), _width(groups)
        if len(self._norms) != n_groups:
            self._norms = np.zeros((n_groups, 0), np.float32)
        n_kept = self._norms.shape[1]
        room = self.cache_bytes // (4 * n_groups * width) * width
        if n_kept < min(n_features, room):
            # By half, so that new blocks seldom draw.
            n_wanted = min(-(-max(n_features, n_kept * 3 // 2) // width) * width, room)
            rest = np.empty((n_groups, n_wanted - n_kept), np.float32)
            draw_norms(groups, self.seed, scale, n_kept, rest)
            self._norms = np.concatenate([self._norms, rest], axis=1)
        return self._norms


def _turns(bandwidth: float) -> float:
    return 1 / (2 * math.pi * usable(bandwidth))


def _width(groups: Groups) -> int:
    return max(LANES * int(groups.sizes.max()), PART)
