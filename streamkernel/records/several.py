"""The encoders of several targets at once, numbers or labels: a column of scores for each, and the sum of losses."""

import abc
from collections.abc import Hashable, Mapping, Sequence
from typing import Any, ClassVar

import numpy as np
from scipy import special

from streamkernel.compute.moments import COUNT, LARGEST, M2, MEAN, are_moments, standardize_columns
from streamkernel.compute.moments import SIZE as MOMENTS
from streamkernel.fields import Rules, array, checked, state_mismatch, untagged, whole
from streamkernel.records.targets import Encoded, Targets, plain_label, plain_number
from streamkernel.state import Array, State, excerpt, real, tag

#: A record's targets as they are kept: the names and plain values of those that it has.
Pairs = tuple[tuple[Hashable, Any], ...]


class EncodedSeveral(Encoded):
    """Encoded targets of n consecutive records, K for each.

    - y: What the loss takes, float64 of shape (n, K); NaN where a record has no such target.
    - before: What was known of each target before the record, float64 of shape (n, K, 2): the (mean, deviation) of
      numbers, or zeros. NaN of a target that no record had had.
    """

    @property
    def labeled(self) -> Array:
        """Which records have a target at all, bool of shape (n,)."""
        return np.asarray(~np.isnan(self.y).all(axis=1))

    @property
    def n_known(self) -> Array:
        """How many targets had come before each record, int64 of shape (n,)."""
        return np.asarray((~np.isnan(self.before[:, :, 0])).sum(axis=1))

    @classmethod
    def joined(cls, parts: Sequence[Encoded]) -> Encoded:
        K = parts[-1].y.shape[1]
        return cls(
            np.concatenate([widened(part.y, K) for part in parts]),
            np.concatenate([widened(part.before, K) for part in parts]),
        )


class SeveralTargets(Targets):
    """The encoder of dicts of targets: one column of scores for each, in the order in which they come.

    A target that a record does not have, or that is None, has no gradient there.

    - loss: A loss of (m,) encoded targets and (m,) scores.
    - most: The most targets. Values of any other are ignored, and counted in `n_limited`.
    - names: The targets' names in the order of their columns.
    """

    names: list[Hashable]
    _columns: dict[Hashable, int]
    limit_warning = "targets past max_targets are not learned, counted in n_ignored_targets"

    def __init__(self, loss: Any, most: int) -> None:
        super().__init__(loss)
        self.most = most

    @property
    def n_outputs(self) -> int:
        return len(self.names)

    def prepare(self, ys: Sequence[Any]) -> tuple[list[Any], int]:
        seen = dict.fromkeys(self.names)
        n_limited = 0
        prepared: list[Pairs | None] = []
        for y in ys:
            if y is None:
                prepared.append(None)
                continue
            if not isinstance(y, Mapping):
                raise ValueError(
                    f"the targets are {excerpt(y)}: pass a dict with a value for each target by its name, or None if "
                    "none is known"
                )
            pairs = []
            for given, value in y.items():
                if value is None:
                    continue
                name = plain_label(given)
                plain = self._plain(name, value)
                if name not in seen:
                    if len(seen) >= self.most:
                        n_limited += 1
                        continue
                    tag(name)  # a name that no state could hold is refused before anything is learned
                    seen[name] = None
                pairs.append((name, plain))
            prepared.append(tuple(pairs) or None)
        return prepared, n_limited

    def admit(self, ys: Sequence[Any]) -> EncodedSeveral:
        n_known = np.empty(len(ys), np.int64)
        for i, pairs in enumerate(ys):
            n_known[i] = len(self.names)
            for name, _ in pairs or ():
                if name not in self._columns:
                    self._columns[name] = len(self.names)
                    self.names.append(name)
        self._widen(len(self.names))
        values = np.full((len(ys), len(self.names)), np.nan)
        for row, pairs in zip(values, ys, strict=True):
            for name, value in pairs or ():
                row[self._columns[name]] = value
        y, before = self._encoded(values)
        before[np.arange(len(self.names)) >= n_known[:, None]] = np.nan
        return EncodedSeveral(y, before)

    def losses(self, encoded: Encoded, scores: Array) -> Array:
        out = np.full(len(encoded.y), np.nan)
        if not len(out):
            return out
        present = ~np.isnan(encoded.y)
        of_each = np.zeros(present.shape)
        of_each[present] = self.answer("__call__", encoded.y[present], scores[present])
        # One column after the other: numpy's sums change their last bits with the number of terms, even of zeros.
        with np.errstate(over="ignore"):
            total = sum(of_each.T, start=np.zeros(len(out)))
        rows = present.any(axis=1)
        out[rows] = np.minimum(total[rows], np.finfo(np.float64).max)
        return out

    def gradient(self, y: Array, scores: Array) -> Array:
        y = widened(y, scores.shape[1])
        present = ~np.isnan(y)
        g = np.zeros(scores.shape)
        g[present] = self.answer("gradient", y[present], scores[present])
        return g

    def are_encoded(self, y: Array) -> bool:
        if y.shape != (len(y), len(self.names)):
            return y.shape == (0,) and not self.names  # before the first target, there are no columns
        known = ~np.isnan(y)
        return bool(known.any(axis=1).all()) and self._is_possible(y[known])

    def state(self) -> State:
        return {"target_names": [tag(name) for name in self.names], "n_ignored_targets": self.n_limited}

    def load_state(self, state: State) -> None:
        self.forget()
        self.names = untagged(state, "target_names")
        self._columns = {name: column for column, name in enumerate(self.names)}
        if len(self._columns) != len(self.names) or len(self.names) > self.most:
            raise state_mismatch("target_names")
        self._widen(len(self.names))
        self.n_limited = whole(state, "n_ignored_targets")

    def forget(self) -> None:
        self.names = []
        self._columns = {}

    @abc.abstractmethod
    def _plain(self, name: Hashable, value: Any) -> Any:
        """A target's value as a plain one; ValueError where it is none."""

    @abc.abstractmethod
    def _widen(self, n: int) -> None:
        """Make room for what is known of n targets."""

    @abc.abstractmethod
    def _encoded(self, values: Array) -> tuple[Array, Array]:
        """Encode values (n, K) one record after the other: what the loss takes, and what was known before (n, K, 2)."""

    @abc.abstractmethod
    def _is_possible(self, y: Array) -> bool:
        """Whether the values of a state can be encoded targets, (m,)."""


def widened(array: Array, n: int) -> Array:
    """An array (B, k, ...) with NaN for each target that came later, (B, n, ...)."""
    missing = n - array.shape[1]
    if missing <= 0:
        return array
    return np.concatenate([array, np.full((len(array), missing, *array.shape[2:]), np.nan)], axis=1)


_NUMBERS = {float, int}


class SeveralNumbers(SeveralTargets):
    """The encoder of dicts of numbers, each target standardized by its running mean and deviation.

    Numbers past `LARGEST` are cut there.

    - moments: The running moments of the targets, float64 of shape (K, `compute.moments.SIZE`).
    """

    rules: ClassVar[Rules] = {"target_moments": are_moments}

    def known(self, y: Any) -> Array | None:
        """The numbers of a dict that has all known targets in their order, (K,); None for anything else."""
        if type(y) is not dict or list(y) != self.names:
            return None
        values = y.values()
        if not _NUMBERS.issuperset(map(type, values)) or not all(-LARGEST <= value <= LARGEST for value in values):
            return None
        return np.array([*values], np.float64)

    def admit_known(self, value: Any) -> Array:
        return np.asarray(self._encoded(value[None])[0][0])

    def values(self, encoded: Encoded, scores: Array) -> list[dict[Any, float]]:
        """Predictions in the targets' units, by the moments before each record, of the targets that had come."""
        if not isinstance(encoded, EncodedSeveral):  # of no record
            return []
        numbers = encoded.before[:, :, 0] + encoded.before[:, :, 1] * scores
        return [
            dict(zip(self.names[:known], row, strict=False))
            for known, row in zip(encoded.n_known.tolist(), numbers.tolist(), strict=True)
        ]

    def numbers(self, scores: Array) -> Array:
        """Predictions in the targets' units, by the current moments, shape (n, K)."""
        return np.asarray(self.moments[:, MEAN] + self.deviations * scores)

    @property
    def deviations(self) -> Array:
        """The running standard deviations of the targets, float64 of shape (K,); 0 before two differ."""
        return np.asarray(np.sqrt(self.moments[:, M2] / np.maximum(self.moments[:, COUNT], 1.0)))

    def state(self) -> State:
        return checked({**super().state(), "target_moments": self.moments.copy()}, self.rules)

    def load_state(self, state: State) -> None:
        checked(state, self.rules)
        super().load_state(state)
        self.moments = array(state, "target_moments", np.float64, len(self.names), MOMENTS)

    def forget(self) -> None:
        super().forget()
        self.moments = np.zeros((0, MOMENTS))

    def _plain(self, name: Hashable, value: Any) -> float:
        try:
            number = plain_number(value)
        except ValueError as error:
            raise ValueError(f"target {excerpt(name)}: {error}") from error
        return min(max(number, -LARGEST), LARGEST)

    def _widen(self, n: int) -> None:
        missing = n - len(self.moments)
        if missing > 0:
            self.moments = np.concatenate([self.moments, np.zeros((missing, MOMENTS))])

    def _encoded(self, values: Array) -> tuple[Array, Array]:
        y, before = np.empty(values.shape), np.empty((*values.shape, 2))
        standardize_columns(values, self.moments, y, before)
        return y, before

    def _is_possible(self, y: Array) -> bool:
        return bool(np.isfinite(y).all())


_BOOLEANS = {bool}


class SeveralLabels(SeveralTargets):
    """The encoder of dicts of booleans: each label is a target that is True or False."""

    limit_warning = "labels past max_labels are not learned, counted in n_ignored_labels"

    def known(self, y: Any) -> Array | None:
        """The sides of a dict that has all known labels in their order, (K,); None for anything else."""
        if type(y) is not dict or list(y) != self.names or not _BOOLEANS.issuperset(map(type, y.values())):
            return None
        return np.array([*y.values()], np.float64)

    def probabilities(self, encoded: Encoded, scores: Array) -> list[dict[Any, dict[bool, float]]]:
        """The probabilities of each record, by the labels that had come before it."""
        if not isinstance(encoded, EncodedSeveral):  # of no record
            return []
        return [self.distribution(row[:known]) for known, row in zip(encoded.n_known.tolist(), scores, strict=True)]

    def distribution(self, scores: Array) -> dict[Any, dict[bool, float]]:
        """The probabilities of the first labels by their scores, (k,)."""
        positive = self.positive(scores).tolist()
        return {name: {False: 1.0 - p, True: p} for name, p in zip(self.names, positive, strict=False)}

    def positive(self, scores: Array) -> Array:
        """The probability that each label is true, of the shape of the scores."""
        return np.asarray(special.expit(scores))

    def _plain(self, name: Hashable, value: Any) -> bool:
        number = real(value)
        if number not in (0.0, 1.0):
            raise ValueError(
                f"label {excerpt(name)} is {excerpt(value)}: use True or False, or None if it is not known"
            )
        return bool(number)

    def _widen(self, n: int) -> None:
        """Nothing is known of a label but its name."""

    def _encoded(self, values: Array) -> tuple[Array, Array]:
        return values, np.zeros((*values.shape, 2))

    def _is_possible(self, y: Array) -> bool:
        return bool(np.isin(y, (0.0, 1.0)).all())
