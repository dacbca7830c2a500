"""The heads of a mixture: their coefficients, the last records, and what decides their weights."""

import math
from typing import ClassVar

import numpy as np

from streamkernel.compute.experts import hedge_weights
from streamkernel.compute.features import LINEAR_LIMIT
from streamkernel.compute.mixture_parts import (
    CLASSES,
    ETA,
    FAST,
    HEADS,
    LABELS,
    LARGEST_GRADIENT,
    MARGIN,
    N_BLOCKS,
    N_RECORDS,
    SLOW,
    MixtureMap,
    MixtureParts,
)
from streamkernel.compute.mixture_pass import pass_mixture
from streamkernel.compute.projection import BATCH, TILE, WINDOW, whole_tiles
from streamkernel.fields import Rules, all_finite, array, checked, none_infinite, number, state_mismatch, within
from streamkernel.growth.history import LARGEST_NORM
from streamkernel.records.batches import HEAVIEST
from streamkernel.state import Array, State

#: The heads and the linear expert by name, in their order.
NAMES = ("falling head", "steady head", "coarse head", "fast head", "careful head", "linear")
#: Records that pass at once where there may be any number of blocks: there is room for those that they may bring.
AT_ONCE = 64
_MOST_NEW = AT_ONCE // BATCH + 1
#: Past any number that a mixture comes to, and sums of their products are finite in single precision.
_MODERATE = within(-1e30, 1e30)
#: The axis of the outputs in each array that has one.
_OUTPUT_AXES = {"coefficients": 0, "linear": 0, "squares": 0, "fitted": 2, "moves": 2, "beta": 1}
#: Fields of the state that are arrays of the mixture as they are.
_WHOLE = ("linear", "squares", "gram", "fitted", "moves", "losses")


class MixtureHeads:
    """Several heads of C outputs on one map of random features, a linear expert, and their mixture.

    Two classes have one output: the score of the second, which the first has as its negative.

    Parameters
    ----------
    kind
        The kind of targets, of `compute.mixture_parts`.
    block_size
        F, the features of a block.
    max_blocks
        The most blocks, or None.

    Attributes
    ----------
    n_inputs
        The inputs that have a place, L.
    n_room
        The blocks that there is room for.

    """

    rules: ClassVar[Rules] = {
        "coefficients": _MODERATE,
        "gains": within(0.0, 1e9),
        "linear": _MODERATE,
        "squares": within(0.0, 1e60),
        "window": within(-LINEAR_LIMIT, LINEAR_LIMIT),
        "window_targets": none_infinite,
        "window_weights": within(0.0, HEAVIEST),
        "gram": _MODERATE,
        "fitted": _MODERATE,
        "moves": _MODERATE,
        "losses": within(0.0, 1e6),
        "beta": _MODERATE,
        "largest_gradient": within(0.0, LARGEST_NORM),
        "last_margin": all_finite,
    }

    def __init__(self, kind: int, block_size: int, max_blocks: int | None) -> None:
        self._kind = kind
        self.block_size = block_size
        self.max_blocks = max_blocks
        self.begin(0, 1)

    def begin(self, n_inputs: int, n_outputs: int) -> None:
        """Begin with nothing learned."""
        C, self.n_inputs = n_outputs, n_inputs
        self.n_room = self.max_blocks or _MOST_NEW
        room = self._room
        self._own = MixtureParts(
            coefficients=np.zeros((C, HEADS, room), np.float32),
            gains=np.ones(room, np.float32),
            linear=np.zeros((C, 1 + n_inputs)),
            squares=np.zeros((C, 1 + n_inputs)),
            window=np.zeros((room // TILE, WINDOW, TILE), np.float32),
            gram=np.zeros((WINDOW, WINDOW)),
            targets=np.zeros((WINDOW, 1 if self._kind == CLASSES else C)),
            weights=np.zeros(WINDOW),
            fitted=np.zeros((SLOW, WINDOW, C)),
            moves=np.zeros((FAST, BATCH, C)),
            losses=np.zeros((1 if self._kind == CLASSES else C, HEADS + 1)),
            beta=np.zeros((self.n_room, C)),
            counts=np.array([0, 1]),  # the first block comes before the first step
            checks=np.array([0.0, math.nan]),
        )

    @property
    def kind(self) -> int:
        """The kind of targets: two classes are a label."""
        return LABELS if self._kind == CLASSES and self.n_outputs == 1 else self._kind

    @property
    def n_targets(self) -> int:
        """Numbers of a record's target: C, or 1 of classes."""
        return int(self._own.targets.shape[1])

    @property
    def targets(self) -> Array:
        """The targets of the last records, float64 of shape (n, `n_targets`)."""
        return self._own.targets[: self._n_window]

    @property
    def n_outputs(self) -> int:
        """C."""
        return int(self._own.linear.shape[0])

    @property
    def n_blocks(self) -> int:
        """The blocks in use."""
        return self._count(N_BLOCKS)

    @property
    def n_steps(self) -> int:
        """Steps taken."""
        return self._count(N_RECORDS) // BATCH

    @property
    def n_reused(self) -> int:
        """The steps that made no block."""
        return self.n_steps - (self.n_blocks - 1)

    @property
    def last_margin(self) -> float:
        """The margin of inequality (9) at the last of these; NaN before the first."""
        return float(self._own.checks[MARGIN])

    @property
    def n_waiting(self) -> int:
        """Records that the next step will fit for the first time."""
        return self._count(N_RECORDS) % BATCH

    @property
    def weights(self) -> Array:
        """The weight of each head and, last, of the linear expert, in the mean of the targets."""
        weights = np.empty(self._own.losses.shape)
        for t in range(len(weights)):
            hedge_weights(self._own.losses[t], np.ones(HEADS + 1), ETA, weights[t])
        return np.asarray(weights.mean(axis=0))

    @property
    def nbytes(self) -> int:
        """Bytes of coefficients, gains and window, of the features in use."""
        return 4 * self._n_columns * (self.n_outputs * HEADS + 1 + WINDOW)

    def advance(self, X: Array, targets: Array, weights: Array, feature_map: MixtureMap) -> Array:
        """Predict, then learn, scaled records; arguments and result as `pass_mixture` has them."""
        out = np.empty((len(X), self.n_outputs))
        pass_mixture(self.kind, X, targets, weights, feature_map, self._own, self.n_room, out)
        return out

    def make_room(self) -> int:
        """Make room for more blocks where there may be any number; how many records may pass at once."""
        if self.max_blocks is not None:
            return 2**62
        if self.n_blocks + _MOST_NEW > self.n_room:
            more = max(self.n_room // 2, _MOST_NEW)
            self.n_room += more
            self._own = self._own._replace(beta=np.pad(self._own.beta, ((0, more), (0, 0))))
            self._take_columns(self._columns())
        return AT_ONCE

    def widen(self, n_inputs: int) -> None:
        """Give more inputs a place: nothing is known of them."""
        at = whole_tiles(1 + self.n_inputs)
        more = whole_tiles(1 + n_inputs) - at
        coefficients, gains, window = (np.insert(part, [at] * more, 0.0, axis=-1) for part in self._columns())
        gains[at : at + more] = 1.0
        pad = (0, 0), (0, n_inputs - self.n_inputs)
        self._own = self._own._replace(linear=np.pad(self._own.linear, pad), squares=np.pad(self._own.squares, pad))
        self.n_inputs = n_inputs
        self._take_columns((coefficients, gains, window))

    def add_outputs(self, n_outputs: int) -> None:
        """Give more outputs a place: their scores are 0, and their targets were not known."""
        parts = {name: getattr(self._own, name) for name in _OUTPUT_AXES}
        if self._kind != CLASSES:
            more = 0, n_outputs - self.n_outputs
            parts["targets"] = np.pad(self._own.targets, ((0, 0), more), constant_values=math.nan)
            parts["losses"] = np.pad(self._own.losses, (more, (0, 0)))
        elif self.n_outputs == 1:  # the second class's score was the negative of the first one's
            for name, axis in _OUTPUT_AXES.items():
                first = parts[name] if name == "squares" else 0 - parts[name]  # no zero becomes negative
                parts[name] = np.concatenate([first, parts[name]], axis)
        for name, axis in _OUTPUT_AXES.items():
            missing = [(0, 0)] * parts[name].ndim
            missing[axis] = 0, n_outputs - parts[name].shape[axis]
            parts[name] = np.pad(parts[name], missing)
        self._own = self._own._replace(**parts)

    def state(self) -> State:
        """The fields of the state."""
        own, n = self._own, self._n_window
        coefficients, gains, window = self._columns()
        margin = self.last_margin
        fields = {
            "coefficients": coefficients,
            "gains": gains,
            "window": window[:n],
            "window_targets": own.targets[:n].copy(),
            "window_weights": own.weights[:n].copy(),
            "beta": own.beta[: self.n_blocks].copy(),
            "counts": own.counts.copy(),
            "largest_gradient": float(own.checks[LARGEST_GRADIENT]),
            "last_margin": None if math.isnan(margin) else margin,  # JSON has no NaN
            **{name: getattr(own, name).copy() for name in _WHOLE},
        }
        return checked(fields, self.rules)

    def load_state(self, state: State, n_inputs: int, n_outputs: int) -> None:
        """Take the fields that `state` gave; ValueError where they do not fit.

        Parameters
        ----------
        state
            The state.
        n_inputs
            The inputs that have a place.
        n_outputs
            C.

        """
        checked(state, self.rules)
        C = n_outputs
        self.begin(n_inputs, C)
        counts = array(state, "counts", np.int64, 2)
        n_blocks = int(counts[N_BLOCKS])
        if (counts < 0).any() or not 1 <= n_blocks <= (self.max_blocks or 2**31):
            raise state_mismatch("counts")
        # Of the state's own length before there is room for it: a number alone must not ask for memory.
        beta = array(state, "beta", np.float64, n_blocks, C)
        if self.max_blocks is None:
            self.n_room = n_blocks + _MOST_NEW
        D = whole_tiles(1 + n_inputs) + 2 * self.block_size * n_blocks
        own = self._own._replace(counts=counts, beta=np.pad(beta, ((0, self.n_room - n_blocks), (0, 0))))
        self._own = own._replace(
            **{name: array(state, name, np.float64, *getattr(own, name).shape) for name in _WHOLE},
        )
        n = self._n_window
        gains = array(state, "gains", np.float32, D)
        window = np.zeros((WINDOW, D), np.float32)
        window[:n] = array(state, "window", np.float32, n, D)
        self._take_columns((array(state, "coefficients", np.float32, C, HEADS, D), gains, window))
        self._own.targets[:n] = array(state, "window_targets", np.float64, n, self._own.targets.shape[1])
        self._own.weights[:n] = array(state, "window_weights", np.float64, n)
        if not (self._own.weights[:n] > 0).all():
            raise state_mismatch("window_weights")
        self._own.checks[LARGEST_GRADIENT] = number(state, "largest_gradient")
        self._own.checks[MARGIN] = math.nan if state.get("last_margin", 0) is None else number(state, "last_margin")

    def _count(self, place: int) -> int:
        return int(self._own.counts[place])

    @property
    def _n_window(self) -> int:
        return min(self._count(N_RECORDS), WINDOW)

    @property
    def _n_columns(self) -> int:
        """D, the features in use: constant and inputs up to a whole tile, then the blocks."""
        return whole_tiles(1 + self.n_inputs) + 2 * self.block_size * self.n_blocks

    @property
    def _room(self) -> int:
        """Columns that there is room for, a multiple of `TILE`."""
        return whole_tiles(whole_tiles(1 + self.n_inputs) + 2 * self.block_size * self.n_room)

    def _columns(self) -> tuple[Array, Array, Array]:
        """Coefficients (C, HEADS, D), gains (D,) and window (WINDOW, D) of the features in use, copies."""
        own, D = self._own, self._n_columns
        window = own.window.transpose(1, 0, 2).reshape(WINDOW, -1)
        return own.coefficients[:, :, :D].copy(), own.gains[:D].copy(), window[:, :D].copy()

    def _take_columns(self, columns: tuple[Array, Array, Array]) -> None:
        """Have such columns, with room for all blocks."""
        coefficients, gains, window = columns
        room = self._room
        missing = room - len(gains)
        tiles = np.pad(window, ((0, 0), (0, missing))).reshape(WINDOW, room // TILE, TILE)
        self._own = self._own._replace(
            coefficients=np.pad(coefficients, ((0, 0), (0, 0), (0, missing))),
            gains=np.pad(gains, (0, missing), constant_values=1),
            window=np.ascontiguousarray(tiles.transpose(1, 0, 2)),
        )
