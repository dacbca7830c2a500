"""Streams for the batch estimators of least squares, cut into batches and these into chunks."""

import math

import numpy as np
import polars as pl

from streamkernel import KernelLeastSquaresClassifier, KernelLeastSquaresRegressor
from streamkernel.batch.chunk import BatchChunk
from streamkernel.batch.least_squares import learn_least_squares_batch
from streamkernel.batch.rows import LocalRows
from streamkernel.estimators.base import machine_of
from streamkernel.records.frames import Frame
from tests.laws.cuts import frame_of

MODELS = {
    "classifier": KernelLeastSquaresClassifier(n_features=12, seed=1),
    "regressor": KernelLeastSquaresRegressor(n_features=12, seed=1),
}


def stream(name, n, seed=0):
    """Numbers, a word of ever more values, a late input, gaps; three labels, the last of them late, or numbers."""
    rng = np.random.default_rng(seed)
    xs, ys = [], []
    for i, (a, b, c) in enumerate(rng.normal(size=(n, 3)).tolist()):
        x = {"a": a, "b": 100 + 20 * b, "word": f"w{i % (2 + 3 * i // n)}", **({"late": c} if 2 * i > n else {})}
        if i % 7 == 0:
            x["b"] = None
        xs.append(x)
        value = math.sin(2 * a) + b * b
        ys.append(50 + 3 * value if name == "regressor" else "nyz"[(value > 1) + (value > 2 and 2 * i > n)])
    return xs, [None if i % 11 == 3 else y for i, y in enumerate(ys)], rng.choice([0.0, 0.5, 1.0, 3.0], n).tolist()


def chunk_of(xs, ys, ws=None):
    """Rows as a chunk of a batch."""
    return BatchChunk(Frame(frame_of(pl.DataFrame, xs) if any(xs) else np.zeros((len(xs), 0))), list(ys), ws)


def batches(xs, ys, ws, size):
    """Slices of a stream, of so many rows each."""
    for start in range(0, len(xs), size):
        part = slice(start, start + size)
        yield xs[part], ys[part], ws[part]


def learn_in_chunks(model, xs, ys, ws, n_chunks, rng=None):
    """Take a batch step on rows in so many chunks, in another order where a generator is given; the scored chunks."""
    order = np.arange(len(xs)) if rng is None else rng.permutation(len(xs))
    parts = [part.tolist() for part in np.array_split(order, n_chunks)]
    rows = LocalRows([chunk_of(*([of[i] for i in part] for of in (xs, ys, ws))) for part in parts])
    learn_least_squares_batch(machine_of(model), rows)
    return rows.scored
