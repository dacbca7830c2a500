"""A sample of the learnt rows of a batch: those with the smallest hashes, whatever the order and place of the rows."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from streamkernel.batch.chunk import EncodedChunk
from streamkernel.compute.row_hashes import row_hashes
from streamkernel.growth.warm_up_buffer import WARM_UP
from streamkernel.state import Array

#: Rows of a sample, and numbers in it, at most.
ROWS, CELLS = 2048, 2**22
#: The keys of a row's target and weight among those of its inputs.
_BESIDE = np.array([0x9E3779B97F4A7C15, 0xD1B54A32D192ED03], np.uint64)


@dataclass(frozen=True)
class BatchSample:
    """Learnt rows in the order of their hashes.

    Attributes
    ----------
    hashes
        uint64 of shape (s,), ascending.
    values
        The inputs before they are scaled, float64 of shape (s, d); NaN where not observed.
    targets
        Plain targets.
    weights
        float64 of shape (s,).

    """

    hashes: Array
    values: Array
    targets: list[Any]
    weights: Array

    @property
    def most(self) -> int:
        """The rows that a sample of so many columns has at most."""
        return max(WARM_UP, min(ROWS, CELLS // max(int(self.values.shape[1]), 1)))


def sample(chunk: EncodedChunk, keys: Array) -> BatchSample:
    """The sample of a chunk; `keys` are those of its columns, uint64 of shape (d,)."""
    rows = np.flatnonzero(chunk.learnt)
    targets = [chunk.targets[r] for r in rows.tolist()]
    beside = np.stack([chunk.raw[rows], chunk.weights[rows]], axis=1)
    hashes = row_hashes(chunk.values[rows], keys) + row_hashes(beside, _BESIDE)
    return _first(BatchSample(hashes, chunk.values[rows], targets, chunk.weights[rows]))


def merged_samples(samples: Sequence[BatchSample]) -> BatchSample:
    """The sample of the rows of several samples."""
    return _first(
        BatchSample(
            np.concatenate([one.hashes for one in samples]),
            np.concatenate([one.values for one in samples]),
            [y for one in samples for y in one.targets],
            np.concatenate([one.weights for one in samples]),
        )
    )


def _first(of: BatchSample) -> BatchSample:
    order = np.argsort(of.hashes, kind="stable")[: of.most]
    return BatchSample(of.hashes[order], of.values[order], [of.targets[i] for i in order.tolist()], of.weights[order])
