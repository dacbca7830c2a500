"""The ring buffer of the last labelled records, as they were scaled on arrival: what a new metric is learnt from."""

from typing import ClassVar

import numpy as np

from streamkernel.compute.arrival import Window, remember
from streamkernel.fields import Rules, all_finite, all_from_zero, array, checked, whole
from streamkernel.state import Array, State


class Recent:
    """The last `size` rows.

    Parameters
    ----------
    size
        Records kept.

    """

    rules: ClassVar[Rules] = {"recent_rows": all_finite, "recent_targets": all_finite, "recent_weights": all_from_zero}

    def __init__(self, size: int) -> None:
        self.size = size
        self.forget()

    def __len__(self) -> int:
        return min(int(self.window.seen[0]), self.size)

    @property
    def nbytes(self) -> int:
        """Bytes of the buffer."""
        return sum(int(part.nbytes) for part in self.window)

    def forget(self) -> None:
        """Empty the buffer."""
        self.window = Window(
            rows=np.zeros((self.size, 0), np.float32),
            targets=np.zeros(self.size),
            weights=np.zeros(self.size),
            seen=np.zeros(1, np.int64),
        )

    def widen(self, n_inputs: int) -> None:
        """More inputs have a place: they were absent, 0, before."""
        more = n_inputs - self.window.rows.shape[1]
        self.window = self.window._replace(rows=np.pad(self.window.rows, ((0, 0), (0, more))))

    def append(self, X: Array, y: Array, w: Array) -> None:
        """Add rows (n, d) with targets and weights."""
        for x, target, weight in zip(X, y, w, strict=True):
            remember(self.window, x, target, weight)

    def rows(self) -> tuple[Array, Array, Array]:
        """Rows, targets and weights, oldest first."""
        n, seen = len(self), int(self.window.seen[0])
        order = np.arange(seen - n, seen) % self.size
        return self.window.rows[order], self.window.targets[order], self.window.weights[order]

    def state(self) -> State:
        """The fields of the state."""
        X, y, w = self.rows()
        return checked(
            {"recent_rows": X, "recent_targets": y, "recent_weights": w},
            self.rules,
        )

    def load_state(self, state: State, n_inputs: int) -> None:
        """Take the fields that `state` gave; ValueError where they do not fit."""
        checked(state, self.rules)
        y = array(state, "recent_targets", np.float64, None)
        w = array(state, "recent_weights", np.float64, len(y))
        X = array(state, "recent_rows", np.float32, len(y), n_inputs)
        whole({"n": len(y)}, "n", self.size)
        self.forget()
        self.widen(n_inputs)
        self.append(X, y, w)
