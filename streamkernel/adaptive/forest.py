"""Trees on the last records: what axis-aligned boundaries ask for, and what the other experts leave over."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from streamkernel.compute.splits import BINS, LANES, SAMPLED, lanes
from streamkernel.compute.tree_growth import TRIED, spread
from streamkernel.compute.trees import FIRST, GROWING, GROWN, SEEN, SINCE, Forest
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
from streamkernel.state import Array, State

#: Nodes of a tree.
NODES = 511


@dataclass(eq=False)
class TreeEnsembles:
    """Ensembles of trees that share a window of the last records; one tree of each is regrown in turn.

    - arrays: What compiled code reads and writes.
    """

    n_ensembles: int  #: T: one for each target to be learned
    #: M, and into as many parts a window is cut: when a part is new, the oldest trees are regrown. 0 for no trees.
    n_trees: int
    window: int  #: Records they are grown on

    #: Leaves are finite and weights are weights, so that predictions are finite; a threshold may be infinite.
    rules: ClassVar[Rules] = {
        "window_rows": none_infinite,
        "window_targets": all_finite,
        "window_weights": all_positive,
        "tree_thresholds": none_missing,
        "tree_values": all_finite,
        "tree_node_weights": all_from_zero,
    }

    def __post_init__(self) -> None:
        self.begin(0, 0)

    def begin(self, n_inputs: int, n_outputs: int) -> None:
        """Begin with nothing learned."""
        T, M = self.n_ensembles if self.n_trees else 0, self.n_trees
        window = self.window if M else 0
        # What comes while a tree is grown has a place of its own: the records it is grown on stay.
        capacity = window + spread(window, M) if M else 0
        slots = M + 1 if M else 0
        self.arrays = Forest(
            rows=np.zeros((capacity, n_inputs)),
            targets=np.zeros((T, capacity, n_outputs)),
            weights=np.zeros(capacity),
            counts=np.zeros(4, np.int64),
            **_no_trees(T, slots, n_outputs),
            **_nothing_grown(window, n_inputs, n_outputs),
        )

    def widen(self, n_inputs: int) -> None:
        """More inputs have a place: not observed in the records of the window."""
        before, d = self.arrays.rows, self.arrays.rows.shape[1]
        if n_inputs > d:
            rows, n = np.zeros((len(before), n_inputs)), int(self.arrays.counts[SEEN])
            rows[:n, :d], rows[:n, d:] = before[:n], np.nan
            self._grow_anew(rows=rows)

    def last_rows(self) -> Array:
        """Return the inputs of the records in the window as they came, (n, d), oldest first."""
        return np.asarray(self.arrays.rows[self._places(min(int(self.arrays.counts[SEEN]), self.window))])

    def keep_last(self, n: int) -> None:
        """Forget all of the window but the last n records; a growth on more is given up, and the next is due."""
        arrays = self.arrays
        if n >= min(int(arrays.counts[SEEN]), self.window):
            return
        places = self._places(n)
        arrays.rows[:n] = arrays.rows[places]
        arrays.targets[:, :n] = arrays.targets[:, places]
        arrays.weights[:n] = arrays.weights[places]
        if arrays.counts[GROWING]:
            arrays.counts[SINCE] = self.window
        arrays.counts[SEEN], arrays.counts[GROWING] = n, 0

    def add_output(self) -> None:
        """One more class: none of the records so far was of it."""
        targets, values = (
            np.concatenate([part, np.zeros((*part.shape[:-1], 1))], axis=-1)
            for part in (self.arrays.targets, self.arrays.values)
        )
        self._grow_anew(targets=targets, values=values)

    def _grow_anew(self, **arrays: Array) -> None:
        """Take arrays of another shape; what is done of a growth is done again by the records that are left for it."""
        changed = self.arrays._replace(**arrays)
        (_, n_inputs), n_outputs = changed.rows.shape, changed.targets.shape[2]
        self.arrays = changed._replace(**_nothing_grown(len(changed.codes), n_inputs, n_outputs))

    def _places(self, n: int) -> Array:
        """Return the places of the last n records, oldest first."""
        seen, capacity = int(self.arrays.counts[SEEN]), len(self.arrays.rows)
        return np.arange(seen - n, seen) % max(capacity, 1)

    def _slots(self) -> tuple[Array, Array]:
        """Return the places of the trees in force: those in the state, and those in `arrays`."""
        grown = int(self.arrays.counts[GROWN])
        numbers = np.arange(max(grown - self.n_trees, 0), grown) if self.n_trees else np.zeros(0, np.int64)
        return numbers % max(self.n_trees, 1), numbers % (self.n_trees + 1)

    @property
    def nbytes(self) -> int:
        """Bytes of the trees and the window."""
        return sum(int(part.nbytes) for part in self.arrays)

    def state(self) -> State:
        """The fields of the state: the window, oldest first, and the trees in force."""
        arrays, (theirs, mine) = self.arrays, self._slots()
        window = self._places(self._n_kept())
        fields = {
            "window_rows": arrays.rows[window],
            "window_targets": arrays.targets[:, window],
            "window_weights": arrays.weights[window],
            "tree_counts": arrays.counts.copy(),
        }
        for name, trees in _no_trees(len(arrays.targets), self.n_trees, arrays.targets.shape[2]).items():
            trees[:, theirs] = getattr(arrays, name)[:, mine]
            fields[f"tree_{name}"] = trees
        return checked(fields, self.rules)

    def load_state(self, state: State, n_inputs: int, n_outputs: int) -> None:
        """Take the fields that `state` gave; ValueError where they do not fit."""
        checked(state, self.rules)
        self.begin(n_inputs, n_outputs)
        arrays = self.arrays
        arrays.counts[:] = array(state, "tree_counts", np.int64, len(arrays.counts))
        if not self._may_be(arrays.counts):
            raise state_mismatch("tree_counts")
        theirs, mine = self._slots()
        for name, trees in _no_trees(len(arrays.targets), self.n_trees, n_outputs).items():
            kept = array(state, f"tree_{name}", trees.dtype.type, *trees.shape)
            getattr(arrays, name)[:, mine] = kept[:, theirs]
        n = self._n_kept()
        window = self._places(n)
        arrays.rows[window] = array(state, "window_rows", np.float64, n, n_inputs)
        arrays.targets[:, window] = array(state, "window_targets", np.float64, len(arrays.targets), n, n_outputs)
        arrays.weights[window] = array(state, "window_weights", np.float64, n)
        self._check_trees(n_inputs)

    def _n_kept(self) -> int:
        """Records that may still be asked for: of the window, and of that of a growth under way."""
        seen, since, _, growing = map(int, self.arrays.counts)
        return growing + since if growing else min(seen, len(self.arrays.codes))

    def _may_be(self, counts: Array) -> bool:
        """Whether a growth that is under way has its window, and records left to end in."""
        seen, since, _, growing = counts.tolist()
        if min(counts) < 0 or not growing:
            return bool(min(counts) >= 0)
        within = FIRST <= growing <= self.window and growing + since <= seen
        return bool(self.n_trees and within and since < spread(growing, self.n_trees))

    def _check_trees(self, n_inputs: int) -> None:
        """A tree must lead from its root to a leaf, whatever a file says."""
        features, children = self.arrays.features, self.arrays.children
        if (features >= n_inputs).any():
            raise state_mismatch("tree_features")
        later = np.arange(NODES)
        inner = features >= 0
        if (inner & ((children <= later) | (children >= NODES - 1))).any():
            raise state_mismatch("tree_children")


def _no_trees(n_ensembles: int, n_trees: int, n_outputs: int) -> dict[str, Array]:
    shape = n_ensembles, n_trees, NODES
    return {
        "features": np.full(shape, -1, np.int32),
        "thresholds": np.zeros(shape),
        "children": np.zeros(shape, np.int32),
        "values": np.zeros((*shape, n_outputs)),
        "node_weights": np.zeros(shape),
    }


def _nothing_grown(window: int, n_inputs: int, n_outputs: int) -> dict[str, Array]:
    """What a growth works with, nothing of it done."""
    width = lanes(n_outputs)
    n_inputs, n_nodes = (n_inputs, NODES) if window else (0, 0)
    return {
        "progress": np.zeros(7, np.int64),
        "columns": np.zeros((5, n_inputs), np.int64),
        "samples": np.zeros((n_inputs, 2 * SAMPLED + 2)),
        "cuts": np.zeros((n_inputs, BINS - 1)),
        "codes": np.zeros((window, n_inputs), np.uint8),
        "watched": np.zeros((window, width)),
        "order": np.zeros((2, window), np.int64),
        "nodes": np.zeros((n_nodes, 3), np.int64),
        "histograms": np.zeros((width // LANES * min(n_inputs, TRIED) * BINS, LANES)),
    }
