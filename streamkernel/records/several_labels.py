"""The encoder of several labels at once: each is true or false, and has a score of its own."""

from collections.abc import Hashable
from typing import Any

import numpy as np
from scipy import special

from streamkernel.records.several import EncodedSeveral, SeveralTargets
from streamkernel.records.targets import Encoded
from streamkernel.state import Array, excerpt, real

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
