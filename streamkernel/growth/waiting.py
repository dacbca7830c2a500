"""Labeled records that wait in the state: a mini-batch for its step, the first ones for an open bandwidth."""

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

from streamkernel.compute.features import Scaling
from streamkernel.compute.moments import scale
from streamkernel.fields import (
    Rules,
    all_finite,
    all_from_zero,
    array,
    checked,
    none_infinite,
    state_mismatch,
    untagged,
)
from streamkernel.growth.feature_scale import occupied, usual
from streamkernel.kernels import Kernel
from streamkernel.kernels.drawing import median_bandwidth
from streamkernel.records.inputs import Inputs
from streamkernel.records.several import widened
from streamkernel.state import Array, State, tag

_LEARNED = np.ones(1, np.bool_)


def are_targets(y: Array) -> bool:
    """Whether encoded targets are finite, or of several NaN where a record does not have one."""
    return all_finite(y) if y.ndim == 1 else none_infinite(y)


class MiniBatch:
    """Room for the scaled rows, targets and weights of the labeled records since the last step.

    - size: B, the records of a step.
    - n: Records that wait.
    """

    rules: ClassVar[Rules] = {"batch_rows": all_finite, "batch_targets": are_targets, "batch_weights": all_from_zero}

    def __init__(self, size: int, dtype: np.dtype[Any]) -> None:
        self._X = np.zeros((size, 0), dtype)
        self._y: Array = np.zeros(size)
        self._w = np.zeros(size)
        self._scores = np.zeros((size, 0))
        self.clear()

    def clear(self) -> None:
        """Begin the next one."""
        self.n = 0
        self._n_scored = 0

    @property
    def room(self) -> int:
        """Records until the step."""
        return len(self._y) - self.n

    @property
    def y(self) -> Array:
        """Encoded targets so far, float64 of shape (n,) or, of several at once, (n, K)."""
        return self._y[: self.n]

    @property
    def w(self) -> Array:
        """Weights so far, float64 of shape (n,)."""
        return self._w[: self.n]

    @property
    def size(self) -> int:
        """Records so far: B of a full one."""
        return self.n

    @property
    def largest_weight(self) -> float:
        """The largest weight so far."""
        return float(self.w.max())

    @property
    def nbytes(self) -> int:
        """Bytes of the rows."""
        return int(self._X.nbytes)

    def append(self, X: Array, y: Array, w: Array, scores: Array | None) -> None:
        """Add rows, with their scores where they were predicted."""
        new = slice(self.n, self.n + len(y))
        # A row that is narrower than those before was made before their inputs came.
        self._widen(X.shape[1])
        self._X[new, : X.shape[1]] = X
        self._X[new, X.shape[1] :] = 0
        if y.ndim > 1:
            self._widen_targets(y.shape[1])
        self._y[new] = y
        self._w[new] = w
        if scores is not None and self._n_scored == self.n:
            self._fit_scores(scores.shape[1])
            self._scores[new] = scores
            self._n_scored += len(y)
        self.n = new.stop

    def room_of(self, n_inputs: int, n_outputs: int) -> tuple[Array, Array, Array, Array]:
        """The room of rows, targets, weights and scores, with those that wait; the rows may be wider."""
        self._widen(n_inputs)
        self._fit_scores(n_outputs)
        return self._X, self._y, self._w, self._scores

    def take_scores(self, scores: Array) -> None:
        """Have the scores (n, K) of the rows that wait."""
        self._fit_scores(scores.shape[1])
        self._scores[: self.n] = scores
        self._n_scored = self.n

    def let_wait(self, n: int) -> None:
        """Let the first n of that room wait, which have scores."""
        self.n = self._n_scored = n

    def append_one(self, values: Array, scaling: Scaling, y: Any) -> None:
        """Add a row as it came, float64 of shape (1, d), of weight 1: it is scaled here, and stays in the moments."""
        n = self.n
        if values.shape[1] > self._X.shape[1]:
            self._widen(values.shape[1])
        scale(values, _LEARNED, *scaling, n, self._X)
        self._y[n] = y
        self._w[n] = 1.0
        self.n = n + 1

    def forget_scores(self) -> None:
        """Forget the cache of scores, after which they are computed again: the coefficients are others."""
        self._n_scored = -1 if self.n else 0

    def rows(self, n_inputs: int) -> Array:
        """The scaled rows, shape (n, n_inputs): an input that came later was absent before."""
        self._widen(n_inputs)
        return np.ascontiguousarray(self._X[: self.n, :n_inputs])

    @property
    def scores(self) -> Array | None:
        """The rows' scores if all were predicted on their way in; they are a cache, a row's bits never differ."""
        return self._scores[: self.n] if self._n_scored == self.n else None

    def state(self, n_inputs: int) -> State:
        """The fields of the state."""
        return checked(
            {
                "batch_rows": self.rows(n_inputs).copy(),
                "batch_targets": self.y.copy(),
                "batch_weights": self.w.copy(),
            },
            self.rules,
        )

    def load_state(self, state: State, n_inputs: int) -> None:
        """Take the fields that `state` gave; ValueError where they do not fit."""
        checked(state, self.rules)
        self.clear()
        given = state.get("batch_targets")
        several = isinstance(given, np.ndarray) and given.ndim == 2
        y = array(state, "batch_targets", np.float64, *[None] * (2 if several else 1))
        w = array(state, "batch_weights", np.float64, len(y))
        X = array(state, "batch_rows", self._X.dtype, len(y), n_inputs)
        if len(y) >= len(self._y):
            raise state_mismatch("batch_targets")
        if len(y) or y.ndim > 1:
            self.append(X, y, w, None)

    def _fit_scores(self, n_outputs: int) -> None:
        if n_outputs != self._scores.shape[1]:  # from now on: a class joins at a step
            self._scores = np.zeros((len(self._y), n_outputs))

    def _widen_targets(self, n_targets: int) -> None:
        """Make room for `n_targets` targets of a record; one that came later was not there before."""
        if not self.n and self._y.shape != (len(self._y), n_targets):  # fewer, where the machine starts over
            self._y = np.full((len(self._y), n_targets), np.nan)
        self._y = widened(self._y, n_targets)

    def _widen(self, n_inputs: int) -> None:
        missing = n_inputs - self._X.shape[1]
        if missing > 0:
            self._X = np.pad(self._X, ((0, 0), (0, missing)))


#: Labeled records after which the bandwidth is fixed and the machine starts over with them.
WARM_UP = 200


class WarmUpBuffer:
    """The first labeled records as they came.

    - targets, weights: Prepared targets and weights so far.
    """

    rules: ClassVar[Rules] = {"warm_up_values": none_infinite, "warm_up_weights": all_from_zero}

    def __init__(self) -> None:
        self._values: list[Array] = []
        self.targets: list[Any] = []
        self.weights: list[float] = []

    @property
    def room(self) -> int:
        """Records until the bandwidth is fixed."""
        return WARM_UP - len(self.targets)

    def append(self, values: Array, targets: Sequence[Any], weights: Array) -> None:
        """Add records: encoded values (n, d), targets and weights."""
        self._values.append(values)
        self.targets.extend(targets)
        self.weights.extend(weights.tolist())

    def rows(self, n_inputs: int) -> Array:
        """The encoded values, shape (n, n_inputs): an input that came later was not observed before."""
        out = np.full((len(self.targets), n_inputs), np.nan)
        at = 0
        for part in self._values:
            out[at : at + len(part), : part.shape[1]] = part
            at += len(part)
        return out

    def bandwidth(self, inputs: Inputs, kernel: Kernel, more: Array | None = None) -> float:
        """The median bandwidth of the records, and of others of encoded values (n, d), until there are `WARM_UP`."""
        values = self.rows(len(inputs))
        X = inputs.scaler.as_of_now(values if more is None else np.concatenate([values, more])[:WARM_UP])
        if inputs.standardize:
            X = usual(X)
        kernel, X = kernel.on_rows(X, inputs.columns.keys)
        return median_bandwidth(kernel, occupied(X))

    def state(self, n_inputs: int) -> State:
        """The fields of the state."""
        return checked(
            {
                "warm_up_values": self.rows(n_inputs),
                "warm_up_targets": [tag(y) for y in self.targets],
                "warm_up_weights": np.array(self.weights),
            },
            self.rules,
        )

    @classmethod
    def from_state(cls, state: State, n_inputs: int) -> "WarmUpBuffer":
        """A buffer of the fields that `state` gave; ValueError where they do not fit."""
        checked(state, cls.rules)
        warm_up = cls()
        targets = untagged(state, "warm_up_targets")
        if len(targets) >= WARM_UP:
            raise state_mismatch("warm_up_targets")
        values = array(state, "warm_up_values", np.float64, len(targets), n_inputs)
        weights = array(state, "warm_up_weights", np.float64, len(targets))
        if targets:
            warm_up.append(values, targets, weights)
        return warm_up
