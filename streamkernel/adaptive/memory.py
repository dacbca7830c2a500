"""The memory of the last labeled records as they were scaled: experts ask it, and a metric is learned from it."""

from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np

from streamkernel.compute import memory
from streamkernel.compute.memory import MANY, MANY_INPUTS, MARKED
from streamkernel.fields import Rules, all_finite, all_positive, array, checked, whole
from streamkernel.state import Array, State

#: Numbers of the rows that experts ask, at most: records times inputs.
LARGEST = 100_000


@dataclass(eq=False)
class Memory:
    """The last rows: those of which neighbors are asked, or those of which a metric is learned, whichever are more.

    - arrays: What compiled code reads and writes.
    """

    #: Records of which neighbors are asked, at most; with many inputs fewer, so that no more than `LARGEST` numbers are
    #: looked at, or one record. 0 for no such experts.
    size: int
    buffer_size: int  #: Records of which a metric is learned

    rules: ClassVar[Rules] = {
        "recent_rows": all_finite,
        "recent_targets": all_finite,
        "recent_weights": all_positive,
        "recent_residuals": all_finite,
    }

    def __post_init__(self) -> None:
        self.begin(0)

    def __len__(self) -> int:
        return min(int(self.arrays.seen[0]), len(self.arrays.targets))

    @property
    def nbytes(self) -> int:
        """Bytes of the memory."""
        return sum(int(part.nbytes) for part in self.arrays)

    def begin(self, n_inputs: int) -> None:
        """Begin with nothing remembered."""
        (span, n), k = self._sizes(n_inputs), MANY
        self.arrays = memory.Ring(
            rows=np.zeros((n_inputs, n), np.float32),
            targets=np.zeros(n),
            weights=np.zeros(n),
            residuals=np.zeros(n),
            seen=np.zeros(1, np.int64),
            scales=np.ones(n_inputs, np.float32),
            span=np.array([span]),
            distances=np.zeros(n, np.float32),
            places=np.zeros((memory.LONG + 1, k), np.int64),
            nearest=np.zeros((memory.LONG + 1, k), np.float32),
            marks=np.zeros((2, -(-n // MARKED), -(-n_inputs // 64) * (n_inputs >= MANY_INPUTS)), np.uint64),
            asked=np.zeros(n_inputs, np.float32),
            answered=np.array([-1]),
        )

    def widen(self, n_inputs: int) -> None:
        """More inputs have a place: they were absent, 0, before."""
        before, n, (d, size) = self.arrays, len(self), self.arrays.rows.shape
        if n_inputs == d:
            return
        if not before.marks.size or self._sizes(n_inputs)[1] != size:
            rows, *others = self._parts(n, n)
            self._fill(np.pad(rows, ((0, 0), (0, n_inputs - d))), *others)
            return
        self.begin(n_inputs)
        wider = self.arrays
        wider.rows[:d, :n], wider.scales[:d] = before.rows[:, :n], before.scales
        wider.marks[..., : before.marks.shape[2]] = before.marks
        kept = {name: getattr(before, name) for name in ("targets", "weights", "residuals", "seen")}
        self.arrays = wider._replace(**kept)

    def resume(self, other: Self) -> None:
        """Begin with the last records of another one, as many as there is room for."""
        self._fill(*other._parts(len(other), len(other)))

    def set_metric(self, scales: Array) -> None:
        """Look at the inputs by another metric from now on, (d,)."""
        self.arrays.scales[:] = scales
        self.arrays.answered[0] = -1

    def rows_from(self, ahead: int, n: int) -> tuple[Array, Array, Array]:
        """Rows, targets and weights of n records, oldest first, from that on with which the last `ahead` begin."""
        rows, targets, weights, _ = self._parts(ahead, n)
        return rows, targets, weights

    def state(self) -> State:
        """The fields of the state."""
        names = ("recent_rows", "recent_targets", "recent_weights", "recent_residuals")
        return checked(dict(zip(names, self._parts(len(self), len(self)), strict=True)), self.rules)

    def load_state(self, state: State, n_inputs: int) -> None:
        """Take the fields that `state` gave, but for the metric; ValueError where they do not fit."""
        checked(state, self.rules)
        y = array(state, "recent_targets", np.float64, None)
        w, r = (array(state, f"recent_{name}", np.float64, len(y)) for name in ("weights", "residuals"))
        X = array(state, "recent_rows", np.float32, len(y), n_inputs)
        self.begin(n_inputs)
        whole({"n": len(y)}, "n", len(self.arrays.targets))
        self._fill(X, y, w, r)

    def _sizes(self, n_inputs: int) -> tuple[int, int]:
        """How many records are searched for neighbors, and how many are remembered."""
        span = min(self.size, max(LARGEST // max(n_inputs, 1), 1))
        return span, max(span, self.buffer_size)

    def _parts(self, ahead: int, n: int) -> tuple[Array, Array, Array, Array]:
        """Rows, targets, weights and residuals, as `rows_from` has them."""
        arrays, first = self.arrays, int(self.arrays.seen[0]) - ahead
        order = np.arange(first, first + n) % len(arrays.targets)
        rows = np.ascontiguousarray(arrays.rows[:, order].T)
        return rows, arrays.targets[order], arrays.weights[order], arrays.residuals[order]

    def _fill(self, X: Array, y: Array, w: Array, residuals: Array) -> None:
        """Begin with the last of these records."""
        scales = self.arrays.scales
        self.begin(X.shape[1])
        self.arrays.scales[: len(scales)] = scales
        n = min(len(X), len(self.arrays.targets))
        for part, own in zip((y, w, residuals), self.arrays[1:4], strict=True):
            own[:n] = part[len(part) - n :]
        self.arrays.rows[:, :n] = X[len(X) - n :].T
        self.arrays.seen[0] = n
        _, blocks, words = self.arrays.marks.shape
        if words:
            there = np.zeros((blocks * MARKED, 64 * words), np.bool_)
            there[:n, : X.shape[1]] = X[len(X) - n :] != 0
            bits = np.packbits(there.reshape(blocks, MARKED, -1).any(axis=1), axis=1, bitorder="little")
            self.arrays.marks[0] = bits.view(np.uint64)
