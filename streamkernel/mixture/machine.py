"""The mixture of a growing machine: what its heads predict and learn, record by record."""

import itertools
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from streamkernel.compute.mixture_parts import CLASSES, LABELS, NUMBERS, SHARES
from streamkernel.compute.moments import scale
from streamkernel.compute.projection import BATCH
from streamkernel.fields import state_mismatch, whole
from streamkernel.growth.record_machine import Figures, RecordMachine
from streamkernel.growth.waiting import WarmUpBuffer
from streamkernel.mixture.features import MixtureFeatures
from streamkernel.mixture.heads import NAMES, MixtureHeads
from streamkernel.records.classes import Classes
from streamkernel.records.inputs import Inputs
from streamkernel.records.results import padded
from streamkernel.records.rows import Rows
from streamkernel.records.several import EncodedSeveral, SeveralLabels, SeveralTargets
from streamkernel.records.targets import Encoded, Targets
from streamkernel.state import Array, State

_DTYPE = np.dtype("float32")
_NO_KEYS = np.zeros(0, np.uint64)
_LEARNED, _WEIGHTS = np.ones(BATCH, np.bool_), np.ones(BATCH)
#: The most features of a block.
BLOCK_SIZE = 256
#: The features that share a variance of 1, where there may be any number.
_EXPECTED = 1024


class MixtureMachine(RecordMachine):
    """The state of a mixture.

    - inputs, targets: The parts, fresh: targets of the squared loss, or of classes or labels with their log-loss.
    - max_features: The most frequencies, or None.
    - seed: The seed of the frequencies, an unsigned 64-bit number.
    """

    n_put_off = BATCH

    def __init__(self, inputs: Inputs, targets: Targets, max_features: int | None, seed: int) -> None:
        max_blocks, block_size, n_expected = None, BLOCK_SIZE, _EXPECTED
        if max_features is not None:
            max_blocks = -(-max_features // BLOCK_SIZE)
            block_size = max_features // max_blocks
            n_expected = max_blocks * block_size
        self.features = MixtureFeatures(block_size, n_expected, seed)
        super().__init__(inputs, targets, self.features.kernel, _DTYPE)
        kind = CLASSES if isinstance(targets, Classes) else LABELS if isinstance(targets, SeveralLabels) else NUMBERS
        self.heads = MixtureHeads(kind, block_size, max_blocks)
        # Plain records wait until a step is full, and are learned together: how many wait, and how many fill it.
        self._plain_targets = np.zeros((BATCH, 1))
        self._n_plain = self._n_missing = 0

    @property
    def is_ready(self) -> bool:
        return self.warm_up is None

    @property
    def nbytes(self) -> int:
        return self.heads.nbytes + self.features.nbytes

    @property
    def figures(self) -> Figures:
        self.settle()
        heads, began = self.heads, self.features.n_drawn.size > 0
        return Figures(
            n_blocks=heads.n_blocks if began else 0,
            block_size=heads.block_size,
            n_steps=heads.n_steps,
            last_batch_size=BATCH if heads.n_steps else 0,
            n_grown=heads.n_blocks if began else 0,
            n_reused=heads.n_reused,
            last_margin=heads.last_margin,
            gamma_0=SHARES[0] if heads.n_steps else 0.0,
            bandwidth=self.features.bandwidth,
        )

    @property
    def expert_weights(self) -> dict[str, float]:
        """The weight of each head and of the linear expert, by name; none before the first record."""
        self.settle()
        return dict(zip(NAMES, self.heads.weights.tolist(), strict=True)) if self.n_records else {}

    def scores(self, X: Array, extra_keys: Array = _NO_KEYS, alone: bool = True) -> Array:  # noqa: ARG002 - one way
        self.settle()
        n = len(X)
        if not self.features.n_drawn.size:
            return np.zeros((n, self.targets.n_outputs))
        rows = self._placed(X, X.shape[1] - len(extra_keys))
        nothing = np.full((n, self.heads.n_targets), np.nan)
        return self._outputs(self._advance(rows, nothing, np.zeros(n), extra_keys))

    def learn_plain(self, x: Mapping[Any, Any], y: Any) -> bool:
        value = self.targets.known(y)
        n = self._n_plain
        if value is None or self.warm_up is not None or not self._open_fast_path().takes(x, n):
            return False
        if not n:
            self._plain_targets = np.zeros((BATCH, self.heads.n_targets))
            self._n_missing = BATCH - self.heads.n_waiting
        self._plain_targets[n] = self.targets.admit_known(value)
        self._n_plain = n + 1
        self.n_records += 1
        if n + 1 == self._n_missing:
            self.settle()
        return True

    def settle(self) -> None:
        n, self._n_plain = self._n_plain, 0
        if n:
            fast_path = self._fast_path
            X = np.empty((n, len(self.inputs)), _DTYPE)
            scale(fast_path.values[:n], _LEARNED[:n], *fast_path.scaling, 0, X)
            self._advance(X, self._plain_targets[:n], _WEIGHTS[:n], _NO_KEYS)

    def state(self) -> State:
        self.settle()
        return {
            "n_records": self.n_records,
            **self.inputs.state(),
            **self.targets.state(),
            **self.features.state(),
            **(self.heads.state() if self.features.n_drawn.size else {}),
            **self._warm_up_state(),
        }

    def load_state(self, state: State) -> None:
        self._n_plain = 0
        self.n_records = whole(state, "n_records")
        self.inputs.load_state(state)
        self.targets.load_state(state)
        self.features.load_state(state, len(self.inputs))
        if self.features.n_drawn.size:
            self.heads.load_state(state, len(self.inputs), self._columns_of(self.targets.n_outputs))
            y = self.heads.targets
            if not self.targets.are_encoded(y if isinstance(self.targets, SeveralTargets) else y[:, 0]):
                raise state_mismatch("window_targets")
            if self.heads.n_blocks != len(self.features.n_drawn):
                raise state_mismatch("n_drawn")
        elif "coefficients" in state:
            raise state_mismatch("n_drawn")
        self._load_warm_up(state)

    @property
    def _n_placed(self) -> int:
        return self.heads.n_inputs

    def _waiting(self) -> list[WarmUpBuffer]:
        return [] if self.warm_up is None else [self.warm_up]

    def _forget(self, bandwidth: float) -> None:
        self.features.forget()
        self.features.bandwidth = bandwidth
        self.heads.begin(0, 1)

    def _pass_segment(
        self, rows: Rows, targets: Sequence[Any], weights: Array, learned: Array, predict: bool
    ) -> tuple[Encoded, Array] | None:
        X = self._scaled(rows, learned)
        encoded = self.targets.admit(targets)
        n_known = rows.n_known
        n_outputs = self._n_outputs(encoded)
        # A new input or output changes the shape of the coefficients.
        changes = np.flatnonzero((np.diff(n_known) != 0) | (np.diff(n_outputs) != 0)) + 1
        edges = [0, *changes.tolist(), len(targets)]
        K = self.targets.n_outputs
        scores = [np.zeros((0, K))]
        for start, stop in itertools.pairwise(edges):
            part = slice(start, stop)
            if not (self.features.n_drawn.size or learned[part].any()):
                scores.append(np.zeros((stop - start, K)))
                continue
            self._fit(int(n_known[start]), self._columns_of(int(n_outputs[start])))
            own = self._placed(X[part], rows.values.shape[1])
            y = np.ascontiguousarray(encoded.y[part].reshape(stop - start, -1)[:, : self.heads.n_targets])
            out = self._advance(own, y, weights[part], rows.extra_keys)
            scores.append(padded(self._outputs(out), K))
        if self.warm_up is not None and learned.any():
            self.warm_up.append(rows.values[learned], [y for y in targets if y is not None], weights[learned])
            if not self.warm_up.room:
                self.begin_anew()
        return (encoded, np.concatenate(scores)) if predict else None

    def _n_outputs(self, encoded: Encoded) -> Array:
        """The outputs that the targets had after each record."""
        if isinstance(self.targets, Classes):
            return np.asarray(np.fmax(encoded.n_classes, encoded.y + 1), np.int64)
        if isinstance(encoded, EncodedSeveral):
            own = ~np.isnan(encoded.y) * np.arange(1, encoded.y.shape[1] + 1)
            return np.asarray(np.maximum(encoded.n_known, own.max(axis=1, initial=0)))
        return np.ones(len(encoded.y), np.int64)

    def _columns_of(self, n_outputs: int) -> int:
        """C for `n_outputs` outputs: two classes, or one, have one score."""
        return 1 if isinstance(self.targets, Classes) and n_outputs <= 2 else n_outputs

    def _fit(self, n_inputs: int, n_columns: int) -> None:
        """Give `n_inputs` inputs and `n_columns` columns of scores their places."""
        if not self.features.n_drawn.size:
            self.features.begin(n_inputs, self.kernel.initial_bandwidth(max(n_inputs, 1)))
            self.heads.begin(n_inputs, n_columns)
            self.features.take_blocks(1, n_inputs)
        if n_inputs > self.heads.n_inputs:
            self.heads.widen(n_inputs)
        if n_columns > self.heads.n_outputs:
            self.heads.add_outputs(n_columns)

    def _placed(self, X: Array, d: int) -> Array:
        """Scaled rows (n, d + e) without the inputs that have no place yet, which are 0 in these."""
        L = self.heads.n_inputs
        return X if d == L else np.concatenate([X[:, :L], X[:, d:]], axis=1)

    def _advance(self, X: Array, y: Array, weights: Array, extra_keys: Array) -> Array:
        """Let rows through the heads; the scores of these."""
        L, start = self.heads.n_inputs, 0
        parts: list[Array] = []
        while start < len(X) or not parts:
            part = slice(start, start + self.heads.make_room())
            feature_map = self.features.feature_map(self.inputs.columns.keys[:L], self.heads.n_room, extra_keys)
            parts.append(self.heads.advance(X[part], y[part], weights[part], feature_map))
            self.features.take_blocks(self.heads.n_blocks, L)
            start = part.stop
        return parts[0] if len(parts) == 1 else np.concatenate(parts)

    def _outputs(self, scores: Array) -> Array:
        """The scores of the heads, (n, C), as those of the targets' outputs."""
        if isinstance(self.targets, SeveralLabels):
            return 2 * scores
        if isinstance(self.targets, Classes) and scores.shape[1] == 1:
            return np.concatenate([-scores, scores], axis=1)[:, : self.targets.n_outputs]
        return scores
