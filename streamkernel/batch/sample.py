"""A sample of the learned rows of a batch: those with the smallest hashes, whatever the order and place of the rows.

Rows that are equal have equal hashes, so that a frequent one would crowd out the others, or be missing: a sample is of
distinct rows, with the number of each.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from streamkernel.batch.chunk import EncodedChunk
from streamkernel.compute.row_hashes import row_hashes
from streamkernel.growth.warm_up_buffer import WARM_UP
from streamkernel.state import Array

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
