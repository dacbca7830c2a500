"""The encoder of labels for margin losses: two labels are the two sides of one score."""

from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np
from river.optim.losses import BinaryLoss
from scipy import special

from streamkernel.fields import state_mismatch, untagged
from streamkernel.records.labels import PLAIN_LABELS, plain_label
from streamkernel.records.targets import Encoded, Targets
from streamkernel.state import Array, State, excerpt, tag


class TwoSides(Targets):
    """The encoder of two labels under a margin loss, which are False and True until others arrive.

    A label that is neither takes the place of one not seen yet; a third is an error.

    Parameters
    ----------
    loss
        A loss of (n,) sides, 0 or 1, and (n,) scores.

    Attributes
    ----------
    labels, seen
        The labels of sides 0 and 1, and whether each was seen.

    """

    labels: list[Hashable]
    seen: list[bool]

    def __init__(self, loss: BinaryLoss) -> None:
        super().__init__(loss)

    def prepare(self, ys: Sequence[Any]) -> tuple[list[Any], int]:
        labels, seen = list(self.labels), list(self.seen)
        prepared = [plain_label(y) for y in ys]
        for label in prepared:
            if label is not None:
                _take_side(label, labels, seen)
        return prepared, 0

    def known(self, y: Any) -> float | None:
        return float(self.labels.index(y)) if type(y) in PLAIN_LABELS and all(self.seen) and y in self.labels else None

    def admit(self, ys: Sequence[Any]) -> Encoded:
        y = np.full(len(ys), np.nan)
        before = np.zeros((len(ys), 2))
        for i, label in enumerate(ys):
            before[i] = self.seen
            if label is not None:
                y[i] = _take_side(label, self.labels, self.seen)
        return Encoded(y, before)

    def probabilities(self, encoded: Encoded, scores: Array) -> list[dict[Any, float]]:
        """The sigmoid of each score as probabilities of both labels; only one, if seen alone and no boolean, has 1."""
        positive = special.expit(scores[:, 0]).tolist()
        result: list[dict[Any, float]] = []
        for p, seen in zip(positive, encoded.before.astype(bool).tolist(), strict=True):
            sides = self._sides(seen)
            result.append(dict(zip(sides, [1.0 - p, p] if len(sides) == 2 else [1.0], strict=True)))
        return result

    def distribution(self, scores: Array) -> tuple[list[Any], Array]:
        """The labels that have a probability by now, and these for each row of scores, shape (n, 2) or (n, 1)."""
        sides, positive = self._sides(self.seen), special.expit(scores[:, 0])
        return sides, np.stack([1.0 - positive, positive] if len(sides) == 2 else [np.ones(len(scores))], axis=1)

    def _sides(self, seen: Sequence[bool]) -> list[Any]:
        """Both labels, unless only one was seen and it is neither False nor True."""
        sides = [
            label if known else bool(side) for side, (label, known) in enumerate(zip(self.labels, seen, strict=True))
        ]
        only = sides[1 if seen[1] else 0]
        return [only] if sum(seen) == 1 and not isinstance(only, bool) else sides

    def state(self) -> State:
        return {"labels": [tag(label) for label in self.labels], "labels_seen": list(self.seen)}

    def load_state(self, state: State) -> None:
        self.labels = untagged(state, "labels")
        if len(set(self.labels)) != 2:
            raise state_mismatch("labels")
        match state.get("labels_seen"):
            case [bool(negative), bool(positive)]:
                self.seen = [negative, positive]
            case _:
                raise state_mismatch("labels_seen")

    def forget(self) -> None:
        self.labels = [False, True]
        self.seen = [False, False]


def _take_side(label: Hashable, labels: list[Hashable], seen: list[bool]) -> int:
    """The side of a label, 0 or 1; a new one takes the place of a label not seen yet."""
    if label in labels:
        side = labels.index(label)
    elif all(seen):
        raise ValueError(
            f"label {excerpt(label)} is a third class after {excerpt(labels[0])} and {excerpt(labels[1])}, and this "
            "loss supports two: use loss=None (softmax) or wrap the model in river.multiclass.OneVsRestClassifier"
        )
    else:
        side = seen.index(False)
    if not seen[side]:
        tag(label)  # a label that no state could hold is refused before anything is learned
        labels[side] = label
        seen[side] = True
    return side
