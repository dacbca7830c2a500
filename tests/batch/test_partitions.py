"""However the rows of a batch are parted and ordered, the model comes to know the same."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from river.optim.losses import Hinge, Huber

from streamkernel import (
    KernelClassifier,
    KernelDensityRatio,
    KernelNoveltyDetector,
    KernelRegressor,
)
from streamkernel.growth import CDSG, DSG, UDSG
from streamkernel.kernels import Gaussian, Laplacian, Polynomial
from tests.batch.parted import assert_near, chunk_of, chunks_of, learn_parts
from tests.laws.cases import cases

TOLERANCE = {"float64": 1e-9, "float32": 1e-6}


def _batches(xs, ys, ws, sizes):
    start = 0
    for size in sizes:
        part = slice(start, start + size)
        yield xs[part], ys[part], ws[part]
        start += size


def assert_any_parts(model, xs, ys, ws, sizes, begin=0, seed=0):
    """A model that learned the first records one by one learns the batches that follow, in parts of all kinds."""
    whole = model.clone()
    whole.advance(xs[:begin], ys[:begin], ws[:begin])
    ways = [whole.clone(include_attributes=True) for _ in range(2)]
    rest = [of[begin:] for of in (xs, ys, ws)]
    for number, batch in enumerate(_batches(*rest, sizes)):
        learn_parts(whole, [chunk_of(*batch)])
        for n_parts, way in zip((2, 5), ways, strict=True):
            rng = np.random.default_rng([seed, number, n_parts]) if n_parts > 2 else None
            learn_parts(way, chunks_of(*batch, n_parts, rng))
            assert_near(whole.__getstate__(), way.__getstate__(), TOLERANCE[model.dtype])
    return whole


@pytest.mark.filterwarnings("ignore:.* past max")
@given(cases("growing"), st.lists(st.integers(0, 130), min_size=1, max_size=3), st.integers(0, 150), st.integers(0, 99))
def test_streams_of_any_kind(case, sizes, begin, seed):
    """Late inputs, strings, gaps, classes that join, weights, rows without a label; a warm-up that is not over."""
    # In single precision sums may tie within their rounding: those are below, of streams where none does.
    model = case.model.clone({"dtype": "float64"})
    assert_any_parts(model, case.xs, case.ys, case.ws, sizes, begin, seed)


def _records(kind, n=900, seed=2):
    """Ids, a string of a hundred values, gaps, inputs and labels that come late, and rows that are predicted only."""
    rng = np.random.default_rng(seed)
    xs, ys = [], []
    for i in range(n):
        x = {f"x{j}": float(v) for j, v in enumerate(rng.normal(size=3)) if rng.random() > 0.1}
        x |= {"id": f"order {i}", "city": f"c{rng.integers(0, 100)}"}
        if i > n // 2:
            x |= {f"late{j}": float(v) for j, v in enumerate(rng.normal(size=2))}
        f = x.get("x0", 0.0) + 0.3 * rng.normal()
        y = {"number": 3 * f, "side": f > 0, "class": f"k{int(np.clip(f, -1, 1) * 1.5 + 1.5 + 2 * i / n)}", "one": True}
        xs.append(x)
        ys.append(y[kind] if rng.random() > 0.1 else None)
    return xs, ys, rng.choice([0.0, 0.5, 1.0, 2.0], n).tolist()


MODELS = {
    "UDSG": ("number", KernelRegressor(growth=UDSG(), seed=1)),
    "CDSG": ("number", KernelRegressor(Laplacian(2.0), Huber(1.0), growth=CDSG(), precondition=False, seed=1)),
    "CDSG, longer": ("number", KernelRegressor(Laplacian(2.0), Huber(1.0), growth=CDSG(2), precondition=False, seed=1)),
    "sum": (
        "number",
        KernelRegressor(0.5 * Gaussian(2.0) + 0.1 * Polynomial(2), growth=DSG(), blocks_per_step=3, seed=1),
    ),
    "sides": ("side", KernelClassifier(loss=Hinge(), max_features=128, average=True, seed=1)),
    "classes": ("class", KernelClassifier(growth=CDSG(), seed=1)),
    "plain": (
        "class",
        KernelClassifier(growth=DSG(), precondition=False, standardize=False, blocks_per_step=3, seed=1),
    ),
    "novelty": ("one", KernelNoveltyDetector(nu=0.2, seed=1)),
    "ratio": ("side", KernelDensityRatio(p=True, q=False, window=300, seed=1)),
}


@pytest.mark.parametrize(
    ("name", "dtype", "begin"),
    [
        ("UDSG", "float64", 210),
        ("UDSG", "float32", 0),
        ("CDSG", "float64", 50),
        ("CDSG, longer", "float64", 50),
        ("sum", "float32", 50),
        ("sides", "float64", 210),
        ("classes", "float64", 0),
        ("classes", "float32", 210),
        ("plain", "float64", 0),
        ("novelty", "float32", 210),
        ("ratio", "float64", 50),
    ],
)
def test_every_estimator(name, begin, dtype):
    """Of a first batch that waits for the bandwidth, is past the warm-up, or follows on records one by one."""
    kind, model = MODELS[name]
    records = _records(kind, 600)
    learned = assert_any_parts(model.clone({"dtype": dtype}), *records, [120, 0, 200, 1, 60], begin)
    assert learned.n_records == sum(y is not None for y in records[1][: begin + 381])
    # Of ids and names that are no number 64 values each, and the rest as they repeat.
    assert 64 + 64 + 3 <= len(learned.input_names) < 64 + 100 + 6 + 20


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_limits_are_the_same_for_any_parts(dtype):
    xs, ys, ws = _records("class", 600)
    model = KernelClassifier(Gaussian(2.0), max_classes=2, max_inputs=40, dtype=dtype, seed=1)
    learned = assert_any_parts(model, xs, ys, ws, [250, 250, 100])
    assert (len(learned.classes), len(learned.input_names)) == (2, 40)
    assert learned.n_ignored_labels == sum(y is not None and y not in learned.classes for y in ys)
    assert learned.n_records == sum(y in learned.classes for y in ys)


def test_structured_frequencies():
    xs, ys, ws = _records("number", 500)
    model = KernelRegressor(Gaussian(2.0, structured=True), seed=1)
    assert_any_parts(model, xs, ys, ws, [250, 250])


def test_the_sample_of_many_equal_rows_is_as_they_are():
    """Of 8,000 rows with five different contents each is in the sample as often as its share."""
    rng = np.random.default_rng(1)
    xs = [{"x": float(v)} for v in rng.choice([0.0, 1.0, 2.0, 7.0, 9.0], 8_000, p=[0.5, 0.2, 0.2, 0.06, 0.04])]
    ys = [x["x"] > 1 for x in xs]
    for n_parts in (1, 7):
        scored, _ = learn_parts(KernelClassifier(Gaussian(1.0), seed=1), chunks_of(xs, ys, None, n_parts))
        drawn = scored.sample.drawn()
        assert (len(scored.sample.hashes), scored.sample.counts.sum(), len(drawn.hashes)) == (5, 8_000, 2048)
        values, counts = np.unique(drawn.values[:, 0], return_counts=True)
        expected = [np.mean([x["x"] == value for x in xs]) for value in values.tolist()]
        np.testing.assert_allclose(counts / 2048, expected, atol=1 / 2048)
        half = np.unique(drawn.values[:512, 0], return_counts=True)[1]
        np.testing.assert_allclose(half / 512, expected, atol=0.1)
