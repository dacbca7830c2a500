"""The heads: recursive least squares on all columns, at different rates of drift."""

import numpy as np

from streamkernel.compute import experts
from streamkernel.compute.packed import RANK, pack, packed_size, padded, place, unpack
from streamkernel.compute.recursive import move_diagonal, settle
from streamkernel.compute.vectors import aligned_zeros
from streamkernel.fields import Rules, all_finite, array, checked, state_mismatch
from streamkernel.state import Array, State


class LeastSquaresHeads:
    """H heads of K outputs on D columns.

    - ridge: rho.
    - drift_rates: q of each head.
    - W: Coefficients, float64 of shape (H, K, D).
    """

    _diagonals: Array
    rules: Rules = dict.fromkeys(("heads_P", "heads_W", "heads_late"), all_finite)

    def __init__(self, ridge: float, drift_rates: tuple[float, ...]) -> None:
        self.ridge = ridge
        self.drifts = np.array(drift_rates, np.float64)
        self.begin(0, 0)

    def begin(self, n_columns: int, n_outputs: int) -> None:
        """Begin with nothing learned."""
        H = len(self.drifts)
        self.W = np.zeros((H, n_outputs, n_columns))
        self._make_room(n_columns)
        self._diagonals[:] = 1 / self.ridge
        for tiles, late, diagonals in zip(self._tiles, self._late, self._diagonals, strict=True):
            settle(tiles, late, diagonals)

    def add_column(self) -> None:
        """One more column: nothing is known of it."""
        D, tiles, diagonals = self.W.shape[2], self._tiles, self._diagonals
        for due in zip(tiles, self._late, diagonals, strict=True):
            settle(*due)
        self._n_late[0] = 0
        if padded(D + 1) > padded(D):  # else there is a place among the padding
            self._make_room(D + 1)
            self._tiles[:, : tiles.shape[1]] = tiles
        self._tiles[:, place(D, D)] = 1 / self.ridge
        self._diagonals = np.pad(diagonals, ((0, 0), (0, 0), (0, 1)), constant_values=1 / self.ridge)
        self.W = np.ascontiguousarray(np.pad(self.W, ((0, 0), (0, 0), (0, 1))))

    def add_output(self) -> None:
        """One more output: its scores are 0."""
        self.W = np.ascontiguousarray(np.pad(self.W, ((0, 0), (0, 1), (0, 0))))

    def replay(self, Phi: Array, truths: Array, weights: Array) -> None:
        """Let records come again, with what the scores should be, (n, K); a weight of 0 leaves one out."""
        experts.replay(Phi, truths, weights, self.arrays)

    @property
    def arrays(self) -> experts.Heads:
        """What compiled code reads and writes."""
        return experts.Heads(self._tiles, self.W, self._late, self._n_late, self._diagonals, self.drifts, self.ridge)

    @property
    def nbytes(self) -> int:
        """Bytes of the matrices, and of a record with its product: the sizes that a budget chooses rest on this sum."""
        parts = self._tiles, self.W, self._late, self._n_late, self._diagonals
        return sum(int(part.nbytes) for part in parts) + 16 * padded(self.W.shape[2])

    @property
    def state_bytes(self) -> int:
        """Bytes of the state, at most."""
        H, K, D = self.W.shape
        return 8 * H * D * (D + K + RANK)

    def settled_P(self) -> Array:
        """The matrices with all that is due taken, lower triangles, (H, D, D); nothing is changed."""
        P = self._P()
        for j, diagonals in enumerate(self._diagonals):
            tiles = self._tiles[j].copy()
            settle(tiles, self._late[j].copy(), diagonals.copy())
            unpack(tiles, P[j])
        return P

    def state(self) -> State:
        """The fields of the state: the current matrices, and the vectors that are due."""
        D = self.W.shape[2]
        late = self._late[:, : self._n_late[0], :D].copy()
        return checked({"heads_P": self._P(), "heads_W": self.W.copy(), "heads_late": late}, self.rules)

    def load_state(self, state: State, n_columns: int, n_outputs: int) -> None:
        """Take the fields that `state` gave; ValueError where they do not fit."""
        checked(state, self.rules)
        H = len(self.drifts)
        self.W = array(state, "heads_W", np.float64, H, n_outputs, n_columns)
        late = array(state, "heads_late", np.float64, H, None, n_columns)
        n_late = late.shape[1]
        if n_late >= RANK:
            raise state_mismatch("heads_late")
        self._take(array(state, "heads_P", np.float64, H, n_columns, n_columns))
        self._late[:, :n_late, :n_columns] = late
        self._n_late[0] = n_late
        for own, drift, diagonals in zip(self._late, self.drifts, self._diagonals, strict=True):
            for c in own[:n_late]:
                move_diagonal(c, drift, 1 / self.ridge, diagonals)

    def _take(self, P: Array) -> None:
        """Take matrices to which nothing is due, lower triangles."""
        self._make_room(P.shape[1])
        self._diagonals[:] = np.einsum("hii->hi", P)[:, None]
        for matrix, tiles in zip(P, self._tiles, strict=True):
            pack(matrix, tiles)

    def _make_room(self, n_columns: int) -> None:
        """Arrays of zeros."""
        H = len(self.drifts)
        self._tiles = aligned_zeros(H, packed_size(n_columns))
        self._late = aligned_zeros(H, RANK, padded(n_columns))
        self._n_late = np.zeros(1, np.int64)
        self._diagonals = np.zeros((H, 2, n_columns))

    def _P(self) -> Array:
        """Return the current matrices."""
        H, _, D = self.W.shape
        P = np.empty((H, D, D))
        for matrix, tiles in zip(P, self._tiles, strict=True):
            unpack(tiles, matrix)
        return P
