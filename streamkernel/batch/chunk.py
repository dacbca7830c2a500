"""A chunk of the rows of a batch, what a machine makes of it, and a sample of its learned rows.

A sample of the learned rows of a batch: those with the smallest hashes, whatever the order and place of the rows.

Rows that are equal have equal hashes, so that a frequent one would crowd out the others, or be missing: a sample is of
distinct rows, with the number of each.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from streamkernel.compute.gaussians import row_hashes
from streamkernel.growth.waiting import WARM_UP
from streamkernel.records.batches import check_columns, known_values, weights_of
from streamkernel.records.classes import Classes, TwoSides
from streamkernel.records.frames import Frame
from streamkernel.records.inputs import Inputs
from streamkernel.records.targets import Numbers, Targets, plain_label
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


#: Rows of a sample, and numbers in it, at most.
ROWS, CELLS = 2048, 2**22
#: The keys of a row's target, its weight and the batch among those of its inputs, and of the number of a copy.
_BESIDE = np.array([0x9E3779B97F4A7C15, 0xD1B54A32D192ED03, 0x8CB92BA72F3D8DD7], np.uint64)
_COPY = np.array([0xAEF17502108EF2D9], np.uint64)


@dataclass(frozen=True)
class BatchSample:
    """Distinct learned rows in the order of their hashes."""

    hashes: Array  #: uint64 of shape (s,), ascending
    counts: Array  #: How many rows are equal to each, int64 of shape (s,)
    values: Array  #: The inputs before they are scaled, float64 of shape (s, d); NaN where not observed
    targets: list[Any]  #: Plain targets
    weights: Array  #: float64 of shape (s,)

    @property
    def most(self) -> int:
        """The most rows that a sample with these columns has."""
        return max(WARM_UP, min(ROWS, CELLS // max(int(self.values.shape[1]), 1)))

    def drawn(self) -> "BatchSample":
        """Return at most as many rows as a sample has: of each a share of the copies, in an order of hashes."""
        total = int(self.counts.sum())
        n = min(total, self.most)
        places = (2 * np.arange(n) + 1) * total // (2 * max(n, 1))
        rows = np.searchsorted(np.cumsum(self.counts), places, side="right")
        copies = np.arange(n) - np.searchsorted(rows, rows)
        hashes = self.hashes[rows] + row_hashes(copies[:, None].astype(np.float64), _COPY)
        order = np.argsort(hashes, kind="stable")
        return replace(self._of(rows[order]), hashes=hashes[order], counts=np.ones(n, np.int64))

    def _of(self, rows: Array) -> "BatchSample":
        targets = [self.targets[row] for row in rows.tolist()]
        return BatchSample(self.hashes[rows], self.counts[rows], self.values[rows], targets, self.weights[rows])


def sample(chunk: EncodedChunk, keys: Array, number: int) -> BatchSample:
    """The sample of a chunk.

    - chunk: Encoded rows.
    - keys: The keys of their columns, uint64 of shape (d,).
    - number: A number of the batch, so that what is frequent is not in the sample of every batch, or of none.
    """
    rows = np.flatnonzero(chunk.learned)
    beside = np.stack([chunk.raw[rows], chunk.weights[rows], np.full(len(rows), float(number))], axis=1)
    hashes = row_hashes(chunk.values[rows], keys) + row_hashes(beside, _BESIDE)
    targets = [chunk.targets[row] for row in rows.tolist()]
    ones = np.ones(len(rows), np.int64)
    return _first(BatchSample(hashes, ones, chunk.values[rows], targets, chunk.weights[rows]))


def merged_samples(samples: Sequence[BatchSample]) -> BatchSample:
    """The sample of the rows of several samples."""
    return _first(
        BatchSample(
            np.concatenate([one.hashes for one in samples]),
            np.concatenate([one.counts for one in samples]),
            np.concatenate([one.values for one in samples]),
            [y for one in samples for y in one.targets],
            np.concatenate([one.weights for one in samples]),
        )
    )


def _first(of: BatchSample) -> BatchSample:
    hashes, first, rows = np.unique(of.hashes, return_index=True, return_inverse=True)
    counts = np.zeros(len(hashes), np.int64)
    np.add.at(counts, rows, of.counts)
    return replace(of._of(first[: of.most]), counts=counts[: of.most])
