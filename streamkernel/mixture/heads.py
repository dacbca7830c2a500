"""The heads of a mixture: their coefficients, the last records, and what decides their weights."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from streamkernel.compute.experts import hedge_weights
from streamkernel.compute.features import LINEAR_LIMIT
from streamkernel.compute.mixture_parts import (
    CLASSES,
    ETA,
    HEADS,
    LABELS,
    LARGEST_GRADIENT,
    MARGIN,
    N_BLOCKS,
    N_RECORDS,
    MixtureMap,
    n_numbers,
    n_rows,
    parts_of,
)
from streamkernel.compute.mixture_pass import pass_mixture
from streamkernel.compute.projection import BATCH, TILE, WINDOW, whole_tiles
from streamkernel.compute.vectors import aligned_zeros
from streamkernel.fields import Rules, all_finite, array, checked, none_infinite, number, state_mismatch, within
from streamkernel.growth.history import LARGEST_NORM
from streamkernel.records.batches import HEAVIEST
from streamkernel.state import Array, State

#: The heads and the linear expert by name, in their order.
NAMES = ("falling head", "steady head", "coarse head", "fast head", "careful head", "linear")
#: Records that pass at once where there may be any number of blocks: there is room for those that they may bring.
AT_ONCE = 64
_MOST_NEW = AT_ONCE // BATCH + 1
#: No count of records overflows.
_MOST_RECORDS = 2**62
#: Past any number that a mixture comes to, and sums of their products are finite in single precision.
_MODERATE = within(-1e30, 1e30)
#: The axis of the outputs in each array that has one.
_OUTPUT_AXES = {"coefficients": 0, "linear": 0, "squares": 0, "fitted": 2, "moves": 2, "beta": 1}
#: Parts that are fields of the state: those whose shape follows from inputs and outputs, and all.
_SETTLED = ("linear", "squares", "gram", "fitted", "moves", "losses")
_WHOLE = (*_SETTLED, "coefficients", "gains", "beta", "counts")


@dataclass(eq=False)
class MixtureHeads:
    """Several heads of C outputs on one map of random features, a linear expert, and their mixture.

    Two classes have one output: the score of the second, which the first has as its negative.

    - kind: The kind of targets: two classes are a label.
    - n_inputs: The inputs that have a place, L.
    - n_outputs: C.
    - n_targets: Numbers of a record's target: C, or 1 of classes.
    - n_room: The blocks that there is room for.
    """

    given_kind: int  #: The kind of targets, of `compute.mixture_parts`
    block_size: int  #: F, the features of a block
    max_blocks: int | None  #: The most blocks, or None

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

    def __post_init__(self) -> None:
        self.begin(0, 1)

    def begin(self, n_inputs: int, n_outputs: int) -> None:
        """Begin with nothing learned."""
        self._lay_out(n_inputs, n_outputs, self.max_blocks or _MOST_NEW, {})

    @property
    def targets(self) -> Array:
        """The targets of the last records, float64 of shape (n, `n_targets`)."""
        return self._own.targets[: self._n_window]

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
        """Bytes of coefficients, gains, window and room, of the features in use."""
        return 4 * self._n_columns * len(self._memory[0])

    def advance(self, X: Array, targets: Array, weights: Array, feature_map: MixtureMap) -> Array:
        """Predict, then learn, scaled records; arguments and result as `pass_mixture` has them."""
        out = np.empty((len(X), self.n_outputs))
        pass_mixture(self.kind, X, targets, weights, *feature_map, *self._memory, self.n_room, out)
        return out

    def make_room(self) -> int:
        """Make room for more blocks where there may be any number; how many records may pass at once."""
        if self.max_blocks is not None:
            return 2**62
        if self.n_blocks + _MOST_NEW > self.n_room:
            n_room = self.n_room + max(self.n_room // 2, _MOST_NEW)
            self._lay_out(self.n_inputs, self.n_outputs, n_room, self._parts())
        return AT_ONCE

    def widen(self, n_inputs: int) -> None:
        """Give more inputs a place: nothing is known of them."""
        parts = self._parts()
        at = whole_tiles(1 + self.n_inputs)
        more = whole_tiles(1 + n_inputs) - at
        for name, empty in (("coefficients", 0.0), ("gains", 1.0), ("window", 0.0)):
            parts[name] = np.insert(parts[name], [at] * more, empty, axis=-1)
        self._lay_out(n_inputs, self.n_outputs, self.n_room, parts)

    def add_outputs(self, n_outputs: int) -> None:
        """Give more outputs a place: scores are 0, targets were not known, gains of new ones are the others' mean."""
        parts, n_targets = self._parts(), self.n_targets
        if self.given_kind == CLASSES and self.n_outputs == 1:
            # The second class's score was the negative of the first one's.
            for name, axis in _OUTPUT_AXES.items():
                first = parts[name] if name == "squares" else 0 - parts[name]  # no zero becomes negative
                parts[name] = np.concatenate([first, parts[name]], axis)
        if self.given_kind != CLASSES:
            for name in ("gains", "gram"):  # the products are linear in the gains
                mean = parts[name].mean(axis=0, keepdims=True)
                parts[name] = np.concatenate([parts[name], *[mean] * (n_outputs - n_targets)])
        self._lay_out(self.n_inputs, n_outputs, self.n_room, parts)
        self._own.targets[:, n_targets:] = math.nan

    def state(self) -> State:
        """The fields of the state."""
        parts, n = self._parts(), self._n_window
        margin = self.last_margin
        fields = {
            **{name: parts[name] for name in _WHOLE},
            "window": parts["window"][:n],
            "window_targets": parts["targets"][:n],
            "window_weights": parts["weights"][:n],
            "largest_gradient": float(self._own.checks[LARGEST_GRADIENT]),
            "last_margin": None if math.isnan(margin) else margin,  # JSON has no NaN
        }
        return checked(fields, self.rules)

    def load_state(self, state: State, n_inputs: int, n_outputs: int) -> None:
        """Take the fields that `state` gave; ValueError where they do not fit.

        - n_inputs: The inputs that have a place.
        - n_outputs: C.
        """
        checked(state, self.rules)
        C = n_outputs
        self.begin(n_inputs, C)
        counts = array(state, "counts", np.int64, 2)
        n_blocks, n = int(counts[N_BLOCKS]), min(int(counts[N_RECORDS]), WINDOW)
        if (counts < 0).any() or counts[N_RECORDS] > _MOST_RECORDS or not 1 <= n_blocks <= (self.max_blocks or 2**31):
            raise state_mismatch("counts")
        D = whole_tiles(1 + n_inputs) + 2 * self.block_size * n_blocks
        # Of the state's own length before there is room for it: a number alone must not ask for memory.
        parts = {
            "coefficients": array(state, "coefficients", np.float32, C, HEADS, D),
            "gains": array(state, "gains", np.float32, self.n_targets, D),
            "window": array(state, "window", np.float32, n, D),
            "beta": array(state, "beta", np.float64, n_blocks, C),
            "targets": array(state, "window_targets", np.float64, n, self.n_targets),
            "weights": array(state, "window_weights", np.float64, n),
            "counts": counts,
        }
        for name in _SETTLED:
            parts[name] = array(state, name, np.float64, *getattr(self._own, name).shape)
        if not (parts["weights"] > 0).all():
            raise state_mismatch("window_weights")
        margin = math.nan if state.get("last_margin", 0) is None else number(state, "last_margin")
        parts["checks"] = np.array([number(state, "largest_gradient"), margin])
        self._lay_out(n_inputs, C, self.max_blocks or n_blocks + _MOST_NEW, parts)

    def _count(self, place: int) -> int:
        return int(self._own.counts[place])

    @property
    def _n_window(self) -> int:
        return min(self._count(N_RECORDS), WINDOW)

    @property
    def _n_columns(self) -> int:
        """D, the features in use: constant and inputs up to a whole tile, then the blocks."""
        return whole_tiles(1 + self.n_inputs) + 2 * self.block_size * self.n_blocks

    def _parts(self) -> dict[str, Array]:
        """Copies of all parts, but for the room: those of the features and blocks in use, the window in rows."""
        own, D = self._own, self._n_columns
        return {
            **{name: part.copy() for name, part in own._asdict().items() if name != "phi"},
            "coefficients": own.coefficients[:, :, :D].copy(),
            "gains": own.gains[:, :D].copy(),
            "window": own.window.transpose(1, 0, 2).reshape(WINDOW, -1)[:, :D].copy(),
            "beta": own.beta[: self.n_blocks].copy(),
        }

    def _lay_out(self, n_inputs: int, n_outputs: int, n_room: int, parts: Mapping[str, Array]) -> None:
        """Make room for them. Given parts fill the first places of theirs, and others are as at the beginning."""
        C, T = n_outputs, 1 if self.given_kind == CLASSES else n_outputs
        room = whole_tiles(whole_tiles(1 + n_inputs) + 2 * self.block_size * n_room)
        self.n_inputs, self.n_outputs, self.n_targets, self.n_room = n_inputs, C, T, n_room
        self.kind = LABELS if self.given_kind == CLASSES and C == 1 else self.given_kind
        self._memory = (
            aligned_zeros(n_rows(C, T), room, dtype=np.float32),
            np.zeros(n_numbers(C, T, n_inputs, n_room)),
            np.array([0, 1]),  # the first block comes before the first step
        )
        own = self._own = parts_of(*self._memory, C, T, n_inputs)
        own.gains[:] = 1
        own.checks[MARGIN] = math.nan
        for name, part in parts.items():
            whole = getattr(own, name)
            if name == "window":
                n, D = part.shape
                whole[:, :n] = np.pad(part, ((0, 0), (0, room - D))).reshape(n, room // TILE, TILE).transpose(1, 0, 2)
            else:
                whole[tuple(map(slice, part.shape))] = part
