"""However the rows of a batch are parted and ordered, the model comes to know the same."""

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from river.optim.losses import Hinge, Huber

from streamkernel import KernelClassifier, KernelDensityRatio, KernelNoveltyDetector, KernelRegressor, losses
from streamkernel.growth import CDSG, DSG, UDSG
from streamkernel.kernels import Gaussian, Laplacian, Polynomial
from tests.batch.parted import assert_near, chunk_of, chunks_of, learn_parts
from tests.stream_cases import cases

TOLERANCE = {"float64": 1e-9, "float32": 1e-6}


def _batches(xs, ys, ws, sizes):
    start = 0
    for size in sizes:
        part = slice(start, start + size)
        yield xs[part], ys[part], ws[part]
        start += size


def assert_any_parts(model, xs, ys, ws, sizes, begin=0, seed=0):
    """A model that learnt the first records one by one learns the batches that follow, in parts of all kinds."""
    whole = model.clone()
    whole.advance(xs[:begin], ys[:begin], ws[:begin])
    ways = [whole.clone(include_attributes=True) for _ in range(3)]
    rest = [of[begin:] for of in (xs, ys, ws)]
    for number, batch in enumerate(_batches(*rest, sizes)):
        learn_parts(whole, [chunk_of(*batch)])
        for n_parts, way in zip((2, 7, 12), ways, strict=True):
            rng = np.random.default_rng([seed, number, n_parts]) if n_parts > 2 else None
            learn_parts(way, chunks_of(*batch, n_parts, rng))
            assert_near(whole.__getstate__(), way.__getstate__(), TOLERANCE[model.dtype])
    return whole


@pytest.mark.filterwarnings("ignore:.* past max")
@settings(max_examples=60)
@given(cases("growing"), st.lists(st.integers(0, 130), min_size=1, max_size=3), st.integers(0, 150), st.integers(0, 99))
def test_streams_of_any_kind(case, sizes, begin, seed):
    """Late inputs, strings, gaps, classes that join, weights, rows without a label; a warm-up that is not over."""
    if case.model.dtype == "float32":
        case = type(case)(case.model.clone({"dtype": "float64"}), case.xs, case.ys, case.ws)
    assert_any_parts(case.model, case.xs, case.ys, case.ws, sizes, begin, seed)
