"""The ring buffer of the last labeled records, as they came: what the coefficients are solved on."""

from typing import ClassVar

import numpy as np

from streamkernel.fields import Rules, all_finite, all_from_zero, array, checked, none_infinite, state_mismatch
from streamkernel.state import Array, State

__all__ = ["LastRecords"]

#: Room that an empty buffer has.
_FIRST = 256


class LastRecords:
    """The last `size` labeled records before scaling, fewer where their rows would take more than `max_bytes`.

    - size: The most records.
    - max_bytes: The most bytes of rows, of 8 bytes an input.
    - n: Records kept.
    """

    n: int
    _next: int
    rules: ClassVar[Rules] = {
        "window_rows": none_infinite,
        "window_targets": all_finite,
        "window_weights": all_from_zero,
    }

    def __init__(self, size: int, max_bytes: int) -> None:
        self._size = size
        self.max_bytes = max_bytes
        self._n_inputs = 0
        self._make(0, 0)

    def __len__(self) -> int:
        return self.n

    @property
    def nbytes(self) -> int:
        """Bytes of the buffer."""
        return int(self._X.nbytes + self._y.nbytes + self._w.nbytes)

    def append(self, values: Array, n_inputs: int, y: Array, w: Array) -> None:
        """Add records: encoded values (n, at least n_inputs) with NaN where not observed, targets and weights."""
        if n_inputs > self._n_inputs:
            self._n_inputs = n_inputs
            self._fit(0)
        size = self.most
        values, y, w = values[-size:], y[-size:], w[-size:]
        self._fit(len(y))
        if not len(y):
            return
        rooms = len(self._y)
        places = (self._next + np.arange(len(y))) % rooms
        # Further columns hold inputs that only these records have. A later input would take over their values.
        width = min(n_inputs, self._X.shape[1])
        self._X[places, :width] = values[:, :width]
        self._X[places, width:] = np.nan
        self._y[places] = y
        self._w[places] = w
        self._next = int((self._next + len(y)) % rooms)
        self.n = min(self.n + len(y), size)

    def rows(self, n_inputs: int, first: int = 0, last: int | None = None) -> Array:
        """The rows from `first` to before `last`, oldest first, shape (n, n_inputs); NaN where not observed."""
        places = self._places()[first:last]
        out = np.full((len(places), n_inputs), np.nan)
        width = min(n_inputs, self._X.shape[1])
        out[:, :width] = self._X[places, :width]
        return out

    @property
    def targets(self) -> Array:
        """Their targets, oldest first."""
        return self._y[self._places()]

    @property
    def weights(self) -> Array:
        """Their weights, oldest first."""
        return self._w[self._places()]

    def state(self, n_inputs: int) -> State:
        """The fields of the state."""
        fields = {
            "window_rows": self.rows(n_inputs),
            "window_targets": self.targets,
            "window_weights": self.weights,
        }
        return checked(fields, self.rules)

    def load_state(self, state: State, n_inputs: int) -> None:
        """Take the fields that `state` gave; ValueError where they do not fit."""
        checked(state, self.rules)
        y = array(state, "window_targets", np.float64, None)
        w = array(state, "window_weights", np.float64, len(y))
        X = array(state, "window_rows", np.float64, len(y), n_inputs)
        self._n_inputs = n_inputs
        if len(y) > self.most:
            raise state_mismatch("window_targets")
        self._make(len(y), n_inputs)
        self.append(X, n_inputs, y, w)

    @property
    def most(self) -> int:
        """The most records that are kept of rows as wide as now."""
        return max(min(self._size, self.max_bytes // (8 * max(self._n_inputs, 1))), 1)

    def _places(self) -> Array:
        return np.asarray((self._next - self.n + np.arange(self.n)) % max(len(self._y), 1))

    def _make(self, room: int, width: int) -> None:
        self._X = np.empty((room, width))
        self._y = np.empty(room)
        self._w = np.empty(room)
        self._next = 0
        self.n = 0

    def _fit(self, more: int) -> None:
        """Make room for `more` further records, or for all that there may be, and for all inputs."""
        size, room = self.most, len(self._y)
        needed = min(self.n + more, size)
        is_wide = self._X.shape[1] >= self._n_inputs
        if needed <= room <= size and is_wide:
            return
        if needed > room:
            room = max(needed, 2 * room, _FIRST)
        room = min(room, size)
        width = self._X.shape[1]
        if not is_wide:
            # By half, so that inputs that come one by one seldom copy all rows.
            width = max(self._n_inputs, min(width + width // 2, self.max_bytes // (8 * max(room, 1))))
        kept = min(self.n, room)
        X, y, w = self.rows(width, self.n - kept), self.targets[self.n - kept :], self.weights[self.n - kept :]
        self._make(room, width)
        self._X[:kept], self._y[:kept], self._w[:kept] = X, y, w
        self.n = kept
        self._next = kept % max(room, 1)
