"""Trees on the last records: what axis-aligned boundaries ask for, and what the other experts leave over."""

from typing import ClassVar

import numpy as np

from streamkernel.compute import tree_growth, trees
from streamkernel.fields import (
    Rules,
    all_finite,
    all_from_zero,
    all_positive,
    array,
    checked,
    none_infinite,
    none_missing,
    state_mismatch,
)
from streamkernel.state import State

#: Nodes of a tree.
NODES = 511
_FIELDS = tuple(name for name in trees.Forest._fields if name not in ("rows", "targets", "weights"))


class TreeEnsembles:
    """Ensembles of trees that share a window of the last records; one tree of each is grown anew in turns.

    Parameters
    ----------
    n_ensembles
        T: one for each target to be learnt.
    n_trees
        M, and into as many parts a window is cut: when a part is new, the oldest trees are grown anew. 0 for no trees.
    window
        Records they are grown on.

    Attributes
    ----------
    arrays
        What compiled code reads and writes.

    """

    #: Leaves are finite and weights are weights, so that predictions are finite; a threshold may be infinite.
    rules: ClassVar[Rules] = {
        "window_rows": none_infinite,
        "window_targets": all_finite,
        "window_weights": all_positive,
        "tree_thresholds": none_missing,
        "tree_values": all_finite,
        "tree_node_weights": all_from_zero,
    }

    def __init__(self, n_ensembles: int, n_trees: int, window: int) -> None:
        self.n_ensembles = n_ensembles
        self.n_trees = n_trees
        self.window = window
        self.begin(0, 0)

    def begin(self, n_inputs: int, n_outputs: int) -> None:
        """Begin with nothing learnt."""
        T, M = self.n_ensembles if self.n_trees else 0, self.n_trees
        window = self.window if self.n_trees else 0
        self.arrays = trees.Forest(
            rows=np.zeros((window, n_inputs)),
            targets=np.zeros((T, window, n_outputs)),
            weights=np.zeros(window),
            counts=np.zeros(3, np.int64),
            features=np.full((T, M, NODES), -1, np.int32),
            thresholds=np.zeros((T, M, NODES)),
            children=np.zeros((T, M, NODES), np.int32),
            values=np.zeros((T, M, NODES, n_outputs)),
            node_weights=np.zeros((T, M, NODES)),
        )

    def grow(self) -> None:
        """Grow the oldest tree of each ensemble anew on the records of the window."""
        tree_growth.grow_oldest(self.arrays)

    def widen(self, n_inputs: int) -> None:
        """More inputs have a place: not observed in the records of the window."""
        more = n_inputs - self.arrays.rows.shape[1]
        rows = np.pad(self.arrays.rows, ((0, 0), (0, more)), constant_values=np.nan)
        self.arrays = self.arrays._replace(rows=rows)

    def keep_last(self, n: int) -> None:
        """Forget all of the window but the last n records."""
        arrays = self.arrays
        window, seen = len(arrays.rows), int(arrays.counts[0])
        if n >= min(seen, window):
            return
        order = np.arange(seen - n, seen) % window
        arrays.rows[:n] = arrays.rows[order]
        arrays.targets[:, :n] = arrays.targets[:, order]
        arrays.weights[:n] = arrays.weights[order]
        arrays.counts[0] = n

    def add_output(self) -> None:
        """One more class: none of the records so far was of it."""
        targets, values = (
            np.concatenate([part, np.zeros((*part.shape[:-1], 1))], axis=-1)
            for part in (self.arrays.targets, self.arrays.values)
        )
        self.arrays = self.arrays._replace(targets=targets, values=values)

    @property
    def nbytes(self) -> int:
        """Bytes of the trees and the window."""
        return sum(int(part.nbytes) for part in self.arrays)

    def state(self) -> State:
        """The fields of the state."""
        n = min(int(self.arrays.counts[0]), len(self.arrays.rows))
        return checked(
            {
                "window_rows": self.arrays.rows[:n].copy(),
                "window_targets": self.arrays.targets[:, :n].copy(),
                "window_weights": self.arrays.weights[:n].copy(),
                **{f"tree_{name}": getattr(self.arrays, name).copy() for name in _FIELDS},
            },
            self.rules,
        )

    def load_state(self, state: State, n_inputs: int, n_outputs: int) -> None:
        """Take the fields that `state` gave; ValueError where they do not fit."""
        checked(state, self.rules)
        self.begin(n_inputs, n_outputs)
        mine = self.arrays
        for name in _FIELDS:
            own = getattr(mine, name)
            own[:] = array(state, f"tree_{name}", own.dtype.type, *own.shape)
        if (mine.counts < 0).any():
            raise state_mismatch("tree_counts")
        n = min(int(mine.counts[0]), len(mine.rows))
        mine.rows[:n] = array(state, "window_rows", np.float64, n, n_inputs)
        mine.targets[:, :n] = array(state, "window_targets", np.float64, len(mine.targets), n, n_outputs)
        mine.weights[:n] = array(state, "window_weights", np.float64, n)
        self._check_trees(n_inputs)

    def _check_trees(self, n_inputs: int) -> None:
        """A tree must lead from its root to a leaf, whatever a file says."""
        features, children = self.arrays.features, self.arrays.children
        if (features >= n_inputs).any():
            raise state_mismatch("tree_features")
        later = np.arange(NODES)
        inner = features >= 0
        if (inner & ((children <= later) | (children >= NODES - 1))).any():
            raise state_mismatch("tree_children")
