"""Ratios 1 to 4: sums over a hundred thousand features, regenerated, against the same with stored frequencies.

m counts frequencies; each has a cosine and a sine, the peers' as well. All have one output, float32 and one thread.
"""

import math
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from benchmarks.footprint import BLOCK, regressor
from benchmarks.rounds import Ratio, interleaved, over, spread
from streamkernel.compute.features import SINE, TILE, add_projected
from streamkernel.compute.gaussians import feature_words
from streamkernel.expansion.expansion import Expansion
from streamkernel.expansion.sources import AT_ONCE, Drawn, Stacks
from streamkernel.expansion.terms import Computed
from streamkernel.kernels import Gaussian

Array = np.ndarray[Any, np.dtype[Any]]

FLOAT = np.dtype("float32")
SEED, CACHE_BYTES = 1, 2**26
DIMENSIONS = (20, 50, 128, 784)
MANY, SOME = 256, 64
IID = {SOME: 1.15, MANY: 1.05}
STRUCTURED = {50: 2.0, 128: 3.5, 784: 12.0}
ALONE = {50: 5.0, 128: 17.0, 784: 80.0}
NO_KEYS = np.zeros(0, np.uint64)


class TiledStored:
    """The twin of `Drawn.add_many`: its tiles drawn beforehand, everything else alike."""

    def __init__(self, keys: Array, n_features: int, bandwidth: float) -> None:
        self.tiles = []
        for first in range(0, n_features, TILE):
            words = np.empty(TILE, np.uint64)
            feature_words(np.uint64(SEED), first, words)
            W = np.empty((len(keys), TILE), FLOAT)
            Gaussian().frequencies(words, keys, bandwidth, W)
            self.tiles.append(W)

    def scores(self, X: Array, alpha: Array) -> Array:
        total = np.zeros((len(X), 1))
        for number, W in enumerate(self.tiles):
            for start in range(0, len(X), AT_ONCE):
                rows = slice(start, start + AT_ONCE)
                add_projected(X[rows] @ W, alpha, number * TILE, SINE[FLOAT], total[rows])
        return total


def plain(X: Array, W: Array, a: Array, b: Array) -> Array:
    """What one would write: W is stored in radians, shape (d, m)."""
    z = X @ W
    return np.asarray(np.cos(z) @ a + np.sin(z) @ b)


def expansion(X: Array, kernel: Gaussian, cache_bytes: int) -> Expansion:
    """The frequencies of a model whose first rows are X."""
    made = Expansion(kernel, BLOCK, FLOAT, cache_bytes, SEED)
    made.begin(X, 1.0)
    return made


def ours(frequencies: Drawn | Stacks | Computed, X: Array, keys: Array, bandwidth: float, alpha: Array) -> Array:
    total = np.zeros((len(X), 1))
    frequencies.add_many(X, keys, NO_KEYS, bandwidth, alpha, alpha.shape[2], total)
    return total


def seconds_of(d: int, m: int, rounds: int) -> dict[str, list[float]]:
    """CPU seconds of every alternative in every round, for d inputs and m features."""
    rng = np.random.default_rng(d)
    bandwidth = math.sqrt(d)
    X = rng.normal(size=(MANY, d)).astype(FLOAT)
    keys = rng.integers(2**63, size=d).astype(np.uint64)
    alpha = rng.normal(size=(1, 2, m)).astype(FLOAT)
    a, b = alpha[0]
    drawn = expansion(X, Gaussian(bandwidth), cache_bytes=0).frequencies
    stacks = expansion(X, Gaussian(bandwidth, structured=True), CACHE_BYTES).frequencies
    tiled = TiledStored(keys, m, bandwidth)
    W = np.concatenate(tiled.tiles, axis=1) * FLOAT.type(2 * math.pi)

    expected = tiled.scores(X, alpha)[:, 0]
    for name, scores in (
        ("drawn", ours(drawn, X, keys, bandwidth, alpha)[:, 0]),
        ("plain numpy", plain(X, W, a, b)),
    ):
        assert np.allclose(scores, expected, rtol=0, atol=1e-3 * np.linalg.norm(alpha)), f"{name} says something else"

    model = regressor(m, d, Gaussian(bandwidth, structured=True))
    record = dict(enumerate(X[0].tolist()))
    calls: dict[str, Any] = {}
    for n in (MANY, SOME):
        calls[f"iid, {n}"] = partial(ours, drawn, X[:n], keys, bandwidth, alpha)
        calls[f"tiled, {n}"] = partial(tiled.scores, X[:n], alpha)
    calls[f"structured, {MANY}"] = partial(ours, stacks, X, keys, bandwidth, alpha)
    calls[f"plain, {MANY}"] = partial(plain, X, W, a, b)
    calls["iid, 1"] = partial(ours, drawn, X[:1], keys, bandwidth, alpha)
    calls["structured, 1"] = partial(ours, stacks, X[:1], keys, bandwidth, alpha)
    calls["predict_one, 1"] = partial(model.predict_one, record)
    calls["plain, 1"] = partial(plain, X[0], W, a, b)
    return interleaved(calls, rounds)


NAMES = {
    "iid": "ours, iid, drawn at every call",
    "tiled": "the same tiling, stored W",
    "structured": "ours, structured",
    "plain": "plain numpy, stored W",
    "predict_one": "`KernelRegressor.predict_one`, structured, dict in",
}


def measure(m: int, rounds: int, dimensions: Sequence[int] = DIMENSIONS) -> tuple[list[Ratio], list[list[str]]]:
    """The ratios 1 to 4, and the nanoseconds behind them."""
    m -= m % TILE
    ratios, rows = [], []
    for d in dimensions:
        took = seconds_of(d, m, rounds)
        for n, target in IID.items():
            what = f"iid against the same tiling with stored W, {n} records, d = {d}"
            ratios.append(Ratio(1, what, over(took[f"iid, {n}"], took[f"tiled, {n}"]), target))
        many = {name: took[f"{name}, {MANY}"] for name in ("iid", "tiled", "structured", "plain")}
        what = f"iid against plain numpy with stored W, {MANY} records, d = {d}"
        ratios.append(Ratio(2, what, over(many["iid"], many["plain"]), 0.5 if d <= 128 else None))
        what = f"structured, times as fast as tiled stored W, {MANY} records, d = {d}"
        ratios.append(Ratio(3, what, over(many["tiled"], many["structured"]), STRUCTURED.get(d), at_least=True))
        what = f"structured, times as fast as plain numpy with stored W, one record, d = {d}"
        ratios.append(Ratio(4, what, over(took["plain, 1"], took["structured, 1"]), ALONE.get(d), at_least=True))
        for name, seconds in took.items():
            kind, n_records = name.split(", ")
            each = [1e9 * s / (m * int(n_records)) for s in seconds]
            rows.append([f"d = {d}, {n_records} record{'s' * (n_records != '1')}", NAMES[kind], spread(each)])
    return sorted(ratios, key=lambda ratio: ratio.number), rows
