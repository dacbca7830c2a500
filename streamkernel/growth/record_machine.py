"""What every growing machine has: records come as they are, are predicted, then learned, one after the other.

A call is cut into segments that end where a mini-batch does, or the wait for a bandwidth. How a stream is cut into
calls never changes a bit.
"""

import abc
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from streamkernel.compute.moments import scale
from streamkernel.fields import state_mismatch
from streamkernel.growth.steps import is_own, warn_of_losses
from streamkernel.growth.waiting import WarmUpBuffer
from streamkernel.kernels import Kernel
from streamkernel.records.batches import BatchEncoder, Records
from streamkernel.records.inputs import Inputs
from streamkernel.records.results import BatchResult, joined_targets, padded
from streamkernel.records.rows import PlainRecords, Rows
from streamkernel.records.targets import Encoded, Targets
from streamkernel.state import Array, State


class GrowingFastPath:
    """Reads records that hold all inputs, if all are numbers; it holds until the inputs are others.

    - n: The records that there is room for. Defaults to 1.
    - values: The records that it took, float64 of shape (n, d).
    - scaling: The moments by which it is to be scaled.
    """

    def __init__(self, inputs: Inputs, n: int = 1) -> None:
        names = inputs.columns.plain_names
        records = PlainRecords(names, n) if names else None
        self.values = records.values if records else np.zeros((n, 0))
        self.scaling = inputs.scaler.scaling(len(inputs))
        #: Whether a record is one of known numbers; they are in a row of `values` then, the first or another.
        self.takes: Callable[..., bool] = records.read_one if records else lambda *_: False
        if inputs.domain is not None:
            read, values = self.takes, self.values
            self.takes = lambda x, place=0: read(x, place) and not inputs.is_outside(values[place])


_NO_KEYS = np.zeros(0, np.uint64)
_NOT_LEARNED = np.zeros(1, np.bool_)


class Figures(NamedTuple):
    """The figures of a growing machine to plot, as the estimators' properties have them."""

    n_blocks: int
    block_size: int
    n_steps: int
    last_batch_size: int
    n_grown: int
    n_reused: int
    last_margin: float
    gamma_0: float
    bandwidth: float


@dataclass(eq=False)
class RecordMachine(abc.ABC):
    """Records in, scores out.

    - n_records: Labeled records learned.
    - warm_up: The first records, until they fix a bandwidth left to the data; then, and where it is not, None.
    """

    inputs: Inputs
    targets: Targets
    kernel: Kernel  #: The kernel, whose bandwidth may be left to the data
    dtype: np.dtype[Any]

    #: `learn_plain` puts off at most this number of records; its fast path has room for one even if it puts off none.
    n_put_off = 1

    def __post_init__(self) -> None:
        self.n_records = 0
        self.warm_up = WarmUpBuffer() if self.kernel.bandwidth is None else None
        self._encoder = BatchEncoder(self.inputs, self.targets)
        self._fast_path = GrowingFastPath(self.inputs, self.n_put_off)
        self._has_own_loss = is_own(self.targets.loss)

    def advance(self, xs: Records, ys: Sequence[Any], ws: Sequence[float] | None = None) -> BatchResult:
        """Predict records, then learn them. Weights multiply the gradient.

        NotFiniteError: Kernel, loss, step schedule or policy gave what is not finite. The mini-batch of that step is
        not learned.
        """
        self.settle()
        parts: list[tuple[Encoded, Array]] = []
        for rows, targets, weights in self._encoder.take(xs, ys, ws):
            parts += self._pass(rows, targets, weights, predict=True)
            self.n_records += sum(y is not None for y in targets)
        K = self.targets.n_outputs
        if len(parts) == 1:
            encoded, scores = parts[0][0], parts[0][1].copy()
            scores = scores if scores.shape[1] == K else padded(scores, K)
        else:
            encoded = joined_targets([part for part, _ in parts])
            scores = np.concatenate([np.zeros((0, K)), *(padded(scores, K) for _, scores in parts)])
        losses = self.targets.losses(encoded, scores)
        if self._has_own_loss:
            warn_of_losses(self.targets.loss, losses[encoded.labeled])
        return BatchResult(encoded, scores, losses)

    def learn(self, xs: Records, ys: Sequence[Any], ws: Sequence[float] | None = None) -> None:
        """Learn records as `advance` does, without predictions."""
        self.settle()
        for rows, targets, weights in self._encoder.take(xs, ys, ws):
            self.learn_rows(rows, targets, weights)

    def learn_rows(self, rows: Rows, targets: Sequence[Any], weights: Array) -> None:
        """Learn encoded records as `learn` does."""
        self._pass(rows, targets, weights, predict=False)
        self.n_records += sum(y is not None for y in targets)

    def predict_one(self, x: Mapping[Any, Any]) -> Array:
        """f(x) of a record, (1, K), with the bits that `advance` has; nothing is changed."""
        self.settle()
        fast_path = self._open_fast_path()
        if not fast_path.takes(x):
            return self.predict([x])
        values = fast_path.values[:1]
        X = np.empty(values.shape, self.dtype)
        scale(values, _NOT_LEARNED, *fast_path.scaling, 0, X)
        return padded(self.scores(X, _NO_KEYS, alone=False), self.targets.n_outputs)

    def predict(self, xs: Records) -> Array:
        """f(x) of records, (n, K), equal to `advance` to rounding; nothing is changed."""
        self.settle()
        K = self.targets.n_outputs
        parts = [np.zeros((0, K))]
        for _, rows in self._encoder.encoded(xs, [None] * len(xs)):
            X = self._scaled(rows, np.zeros(len(rows.values), np.bool_))
            parts.append(padded(self.scores(X, rows.extra_keys, alone=True), K))
        return np.concatenate(parts)

    def settle(self) -> None:  # noqa: B027 - most machines put nothing off
        """Learn the records that were put off. Every call that reads something does so first."""

    @property
    @abc.abstractmethod
    def is_ready(self) -> bool:
        """Whether there are coefficients that stay: the bandwidth is fixed, and a step was taken."""

    @property
    @abc.abstractmethod
    def figures(self) -> Figures:
        """The figures to plot."""

    @property
    @abc.abstractmethod
    def nbytes(self) -> int:
        """Bytes of what was learned and of the cached frequencies."""

    @abc.abstractmethod
    def learn_plain(self, x: Mapping[Any, Any], y: Any) -> bool:
        """Learn a record of known numbers and a known label, of weight 1; False, and nothing is done, of another."""

    @abc.abstractmethod
    def state(self) -> State:
        """The fields of the state."""

    @abc.abstractmethod
    def load_state(self, state: State) -> None:
        """Take the fields that `state` gave; ValueError where they do not fit, and then the machine is spoilt."""

    @abc.abstractmethod
    def scores(self, X: Array, extra_keys: Array = _NO_KEYS, alone: bool = True) -> Array:
        """The scores f(x) of scaled rows (n, d + e), as `Expansion.scores` has them; nothing is changed."""

    def begin_anew(self, more: Array | None = None) -> None:
        """Fix the bandwidth by the records that wait for it and learn them again, as a fresh machine would.

        It is that of more encoded values, (n, d), too, which are not learned.
        """
        warm_up = self.warm_up
        assert warm_up is not None
        bandwidth = warm_up.bandwidth(self.inputs, self.kernel, more)
        values = warm_up.rows(len(self.inputs))
        rows = Rows.known(values)._replace(n_known=np.full(len(values), self._n_placed))
        self.warm_up = None
        for part in (self.inputs, self.targets):
            part.forget()
        self._forget(bandwidth)
        self._pass(rows, warm_up.targets, np.array(warm_up.weights), predict=False)

    @property
    def _n_placed(self) -> int:
        """The inputs that the records so far have brought: a call may know those of later ones."""
        return len(self.inputs)

    def _warm_up_state(self) -> State:
        """The fields of the warm-up in the state."""
        return {} if self.warm_up is None else self.warm_up.state(len(self.inputs))

    def _load_warm_up(self, state: State) -> None:
        """Take these fields; ValueError where they do not fit."""
        warms_up = any(name.startswith("warm_up_") for name in state)
        self.warm_up = WarmUpBuffer.from_state(state, len(self.inputs)) if warms_up else None
        if self.warm_up is not None and None in self.warm_up.targets:
            raise state_mismatch("warm_up_targets")

    @abc.abstractmethod
    def _forget(self, bandwidth: float) -> None:
        """Forget all that was learned, and have a bandwidth."""

    @abc.abstractmethod
    def _waiting(self) -> Sequence[Any]:
        """What has `room` for labeled records: no segment goes past the end of one."""

    @abc.abstractmethod
    def _pass_segment(
        self, rows: Rows, targets: Sequence[Any], weights: Array, learned: Array, predict: bool
    ) -> tuple[Encoded, Array] | None:
        """Predict, then learn, the records of a segment; encoded targets and scores, if wanted."""

    def _pass_usual(
        self,
        rows: Rows,  # noqa: ARG002
        targets: Sequence[Any],  # noqa: ARG002
        weights: Array,  # noqa: ARG002
        learned: Array,  # noqa: ARG002
        start: int,  # noqa: ARG002
    ) -> tuple[Encoded, Array] | None:
        """Take records from `start` on, as their segments would be; None, and nothing is done, where it cannot."""
        return None

    def _open_fast_path(self) -> GrowingFastPath:
        if self._fast_path.scaling.moments is not self.inputs.scaler.moments:  # other inputs since
            self._fast_path = GrowingFastPath(self.inputs, self.n_put_off)
        return self._fast_path

    def _pass(self, rows: Rows, targets: Sequence[Any], weights: Array, predict: bool) -> list[tuple[Encoded, Array]]:
        """Take encoded records in segments that end where the coefficients change; targets and scores, if wanted."""
        learned = np.array([y is not None for y in targets], np.bool_)
        so_far = np.cumsum(learned)
        parts = []
        start, done = 0, 0
        while start < len(targets):
            part = self._pass_usual(rows, targets, weights, learned, start)
            if part is not None:
                segment = slice(start, start + len(part[1]))
            else:
                room = min((part.room for part in self._waiting()), default=len(targets))
                stop = int(so_far.searchsorted(done + room)) + 1
                segment = slice(start, min(stop, len(targets)))
                own = rows if segment.stop - start == len(targets) else rows.part(segment)
                part = self._pass_segment(own, targets[segment], weights[segment], learned[segment], predict)
            if predict and part is not None:
                parts.append(part)
            start = segment.stop
            done = int(so_far[start - 1])
        return parts

    def _scaled(self, rows: Rows, learned: Array) -> Array:
        X = self.inputs.scaler.scale(rows, learned, self.dtype)
        # The frequencies of an input follow from its key; or, structured, from its place.
        return rows.in_order(X) if self.kernel.structured else X
