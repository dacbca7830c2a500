"""The encoder of several numbers at once: each target is standardized by moments of its own."""

from collections.abc import Hashable
from typing import Any, ClassVar

import numpy as np

from streamkernel.compute.moments import COUNT, LARGEST, M2, MEAN, are_moments, standardize_columns
from streamkernel.compute.moments import SIZE as MOMENTS
from streamkernel.fields import Rules, array, checked
from streamkernel.records.numbers import plain_number
from streamkernel.records.several import EncodedSeveral, SeveralTargets
from streamkernel.records.targets import Encoded
from streamkernel.state import Array, State, excerpt

_NUMBERS = {float, int}


class SeveralNumbers(SeveralTargets):
    """The encoder of dicts of numbers, each target standardized by its running mean and deviation.

    Numbers past `LARGEST` are cut there.

    Attributes
    ----------
    moments
        The running moments of the targets, float64 of shape (K, `compute.moments.SIZE`).

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
