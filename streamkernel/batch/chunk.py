"""A chunk of the rows of a batch, and what a machine makes of it."""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from streamkernel.records.batches import weights_of
from streamkernel.records.classes import Classes
from streamkernel.records.frame_encoder import check_columns, known_values
from streamkernel.records.frames import Frame
from streamkernel.records.inputs import Inputs
from streamkernel.records.labels import plain_label
from streamkernel.records.numbers import Numbers
from streamkernel.records.targets import Targets
from streamkernel.records.two_sides import TwoSides
from streamkernel.records.vocabulary import Vocabulary, known_labels, vocabulary
from streamkernel.state import Array


class BatchChunk(NamedTuple):
    """Rows of a batch as they came."""

    X: Frame  #: Their inputs, n rows
    y: list[Any]  #: n targets; None is predicted only
    w: Any  #: n weights; None is 1 each

    @classmethod
    def empty(cls) -> "BatchChunk":
        """A chunk of no rows."""
        return cls(Frame(np.zeros((0, 0))), [], None)


@dataclass(frozen=True)
class EncodedChunk:
    """Rows of a batch as numbers."""

    values: Array  #: The inputs before they are scaled, float64 of shape (n, d); NaN where not observed
    targets: list[Any]  #: Plain targets
    y: Array  #: Encoded targets, float64 of shape (n,); NaN where a row is not learned
    raw: Array  #: Numbers as they came, and labels as in `y`
    weights: Array  #: float64 of shape (n,)
    vocabulary: Vocabulary  #: What the rows bring
    n_clipped: int  #: Targets that were cut to the largest there may be

    @property
    def learned(self) -> Array:
        """Which rows are learned, bool of shape (n,)."""
        return ~np.isnan(self.y)


def encode(inputs: Inputs, targets: Targets, chunk: BatchChunk) -> EncodedChunk:
    """Encode rows by what a model knows, which is not changed; numbers are standardized as of now.

    ValueError: A row cannot be used: an infinite input, an input, a target or a weight of a type that is none.
    """
    if len(chunk.y) != len(chunk.X):
        raise ValueError(f"got {len(chunk.y)} targets for {len(chunk.X)} records: pass one per record")
    columns = chunk.X.read()
    check_columns(inputs, columns)
    n_clipped = 0
    if isinstance(targets, Classes | TwoSides):
        plain = [plain_label(y) for y in chunk.y]
        known = known_labels(targets)
        y = np.array([known.get(label, np.nan) for label in plain], np.float64)
    else:
        plain, n_clipped = targets.prepare(chunk.y)
        y = targets.admit(plain).y if not isinstance(targets, Numbers) else np.array(plain, np.float64)
    raw = y
    if isinstance(targets, Numbers):
        y = targets.as_of_now(raw)
    return EncodedChunk(
        known_values(inputs, columns),
        plain,
        y,
        raw,
        weights_of(chunk.w, len(plain)),
        vocabulary(inputs, targets, columns, plain),
        n_clipped,
    )
