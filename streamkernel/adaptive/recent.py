"""The ring buffer of the last labelled records, as they were scaled on arrival: what a new metric is learnt from."""

import numpy as np

from streamkernel.state import Array, Record, array, whole


class Recent:
    """The last `size` rows.

    Parameters
    ----------
    size
        Records kept.

    """

    def __init__(self, size: int) -> None:
        self.size = size
        self._X = np.zeros((0, 0), np.float32)
        self._y = np.zeros(0)
        self._w = np.zeros(0)
        self._seen = 0

    def __len__(self) -> int:
        return min(self._seen, self.size)

    @property
    def nbytes(self) -> int:
        """Bytes of the buffer."""
        return int(self._X.nbytes + self._y.nbytes + self._w.nbytes)

    def append(self, X: Array, y: Array, w: Array) -> None:
        """Add rows (n, d) with targets and weights; an input that comes later was absent, 0, before."""
        rows, columns = self._X.shape
        if len(X) == 1 and self._seen >= self.size and X.shape[1] == columns:
            place = self._seen % self.size
            self._X[place], self._y[place], self._w[place] = X[0], y[0], w[0]
            self._seen += 1
            return
        wanted = min(self._seen + len(X), self.size)
        if wanted > rows or X.shape[1] > columns:
            room = max(rows, min(max(wanted, 2 * rows), self.size))
            larger = np.zeros((room, max(X.shape[1], columns)), np.float32)
            larger[:rows, :columns] = self._X
            self._X = larger
            self._y, self._w = (np.concatenate([part, np.zeros(room - rows)]) for part in (self._y, self._w))
        X, y, w = (part[-self.size :] for part in (X, y, w))
        at = (self._seen + np.arange(len(X))) % self.size
        self._X[at] = 0.0
        self._X[at, : X.shape[1]] = X
        self._y[at] = y
        self._w[at] = w
        self._seen += len(X)

    def rows(self) -> tuple[Array, Array, Array]:
        """Rows, targets and weights, oldest first."""
        order = (self._seen + np.arange(len(self))) % len(self) if len(self) == self.size else np.arange(len(self))
        return self._X[order], self._y[order], self._w[order]

    def record(self, n_inputs: int) -> Record:
        """The fields of the state."""
        X, y, w = self.rows()
        full = np.zeros((len(X), n_inputs), np.float32)
        full[:, : X.shape[1]] = X[:, :n_inputs]
        return {"recent_rows": full, "recent_targets": y, "recent_weights": w}

    def restore(self, record: Record, n_inputs: int) -> None:
        """Take the fields that `record` gave; ValueError where they do not fit."""
        y = array(record, "recent_targets", np.float64, None)
        w = array(record, "recent_weights", np.float64, len(y))
        X = array(record, "recent_rows", np.float32, len(y), n_inputs)
        whole({"n": len(y)}, "n", self.size)
        self.__init__(self.size)  # type: ignore[misc]
        self.append(X, y, w)
