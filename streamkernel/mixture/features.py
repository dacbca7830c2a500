"""The features of a mixture: frequencies of several bandwidths, which see one, two or all of the inputs."""

import math
from typing import ClassVar

import numpy as np

from streamkernel.compute.gaussians import feature_words, restrict
from streamkernel.compute.mixture_parts import MixtureMap
from streamkernel.compute.vectors import aligned_zeros
from streamkernel.fields import Rules, all_from_zero, array, checked, number, state_mismatch, whole
from streamkernel.kernels import Gaussian
from streamkernel.kernels.drawing import draw_frequencies
from streamkernel.state import Array, State

_DTYPE = np.dtype("float32")
_NO_KEYS = np.zeros(0, np.uint64)
#: A feature's bandwidth, in that of the Gaussian kernel, and how many inputs it sees, 0 for all: one of these in turns.
#: Narrow ones of few inputs are for steps.
SHAPES = (
    *((0.35, 1), (0.35, 2), (0.35, 0)),
    *((0.7, 1), (0.7, 2), (0.7, 0)),
    *((1.4, 1), (1.4, 2), (1.4, 0)),
    *((0.175, 1), (0.175, 2)),
)


class MixtureFeatures:
    """Blocks of cosines and sines, which a seed reproduces.

    - block_size: F, the frequencies of a block.
    - n_expected: The frequencies whose cosines and sines have a mean square sum of 1.
    - seed: The seed of the frequencies, an unsigned 64-bit number.
    - kernel: The kernel whose bandwidth is chosen.
    - bandwidth: The length scale in use, in units of the scaled inputs; 0 before the first record.
    - n_beginning: The inputs of the first record, d0.
    - n_drawn: The inputs that there were when a block was made, int64 of shape (blocks,).
    """

    rules: ClassVar[Rules] = {"bandwidth": all_from_zero}

    def __init__(self, block_size: int, n_expected: int, seed: int) -> None:
        self.block_size = block_size
        self._norm = 1 / math.sqrt(n_expected)
        self.seed = seed
        self.kernel = Gaussian()
        self.forget()

    def forget(self) -> None:
        """Start over: no block is made, and no bandwidth chosen."""
        self.bandwidth = 0.0
        self.n_beginning = 0
        self.n_drawn = np.zeros(0, np.int64)
        self._feature_map: MixtureMap | None = None

    def begin(self, n_inputs: int, bandwidth: float) -> None:
        """Begin with `n_inputs` inputs, and a bandwidth unless there is one."""
        self.n_beginning = n_inputs
        self.bandwidth = self.bandwidth or bandwidth

    def take_blocks(self, n_blocks: int, n_inputs: int) -> None:
        """Note that there are `n_blocks` blocks by now, the new ones made of `n_inputs` inputs."""
        new = n_blocks - len(self.n_drawn)
        if new:
            self.n_drawn = np.concatenate([self.n_drawn, np.full(new, n_inputs)])

    def feature_map(self, keys: Array, n_room: int, extra_keys: Array = _NO_KEYS) -> MixtureMap:
        """How scaled rows become features.

        - keys: The keys of the d inputs, uint64.
        - n_room: The blocks that there may be.
        - extra_keys: The keys of inputs met in these rows only, uint64 of shape (e,).
        """
        kept = self._feature_map
        if kept is None or len(keys) != kept.n_linear or n_room != len(kept.W):
            self._feature_map = kept = self._map_of(self._frequencies(keys, n_room), len(keys))
        if not len(extra_keys):
            return kept
        n_inputs = len(keys)
        extra = self._drawn(extra_keys, n_inputs, n_room, n_inputs)
        return self._map_of(np.concatenate([kept.W, extra], axis=1), n_inputs)

    @property
    def nbytes(self) -> int:
        """Bytes of the frequencies that are kept."""
        return 0 if self._feature_map is None else int(self._feature_map.W.nbytes)

    def state(self) -> State:
        """The fields of the state."""
        own = {"seed": self.seed, "bandwidth": self.bandwidth, "n_beginning": self.n_beginning}
        return checked({**own, "n_drawn": self.n_drawn.copy()}, self.rules)

    def load_state(self, state: State, n_inputs: int) -> None:
        """Take the fields that `state` gave; ValueError where they do not fit."""
        checked(state, self.rules)
        self.seed = whole(state, "seed", most=2**64 - 1)
        self.bandwidth = number(state, "bandwidth")
        self.n_beginning = whole(state, "n_beginning", n_inputs)
        self.n_drawn = array(state, "n_drawn", np.int64, None)
        if ((self.n_drawn < 0) | (self.n_drawn > n_inputs)).any():
            raise state_mismatch("n_drawn")
        if len(self.n_drawn) and not self.bandwidth:
            raise state_mismatch("bandwidth")
        self._feature_map = None

    def _map_of(self, W: Array, n_inputs: int) -> MixtureMap:
        root = math.sqrt(max(self.n_beginning, 1))
        return MixtureMap(W, root, n_inputs, self._norm)

    def _frequencies(self, keys: Array, n_room: int) -> Array:
        """Frequencies in turns, float32 of shape (n_room, d, F), those of earlier inputs as they were."""
        kept = self._feature_map
        # Which inputs a block to come will see is not decided yet.
        if kept is None or n_room != len(kept.W) or len(self.n_drawn) < n_room:
            return self._drawn(keys, 0, n_room, len(keys))
        known = kept.n_linear
        return np.concatenate([kept.W, self._drawn(keys[known:], known, n_room, len(keys))], axis=1)

    def _drawn(self, keys: Array, first: int, n_room: int, n_placed: int) -> Array:
        """Frequencies of the inputs from `first` on, which have these keys; blocks to come see some of `n_placed`."""
        m = n_room * self.block_size
        words = np.empty(m, np.uint64)
        feature_words(np.uint64(self.seed), 0, words)
        W = np.empty((len(keys), m), _DTYPE)
        draw_frequencies(self.kernel, words, keys, self.bandwidth, W)
        shapes = np.arange(m) % len(SHAPES)
        W /= np.array([width for width, _ in SHAPES], _DTYPE)[shapes]
        n_inputs = np.full(n_room, n_placed)
        n_inputs[: len(self.n_drawn)] = self.n_drawn
        sizes = np.array([size for _, size in SHAPES])[shapes]
        restrict(words, sizes, n_inputs.repeat(self.block_size), first, W)
        own = aligned_zeros(n_room, len(keys), self.block_size, dtype=np.float32)
        own[:] = W.reshape(len(keys), n_room, self.block_size).transpose(1, 0, 2)
        return own
