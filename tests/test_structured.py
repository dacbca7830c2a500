"""Growing machines with structured frequencies: one learning path, copies, refusals, and nothing lost by them."""

from typing import Any

import numpy as np
import pytest

from streamkernel import KernelClassifier, KernelRegressor
from streamkernel.expansion.stacks import LARGEST, SMALLEST, Stacks
from streamkernel.growth import CDSG, DSG, UDSG
from streamkernel.kernels import Gaussian
from tests.laws.cases import Case
from tests.laws.cuts import assert_any_cut

pytestmark = pytest.mark.filterwarnings("ignore:inputs past max_inputs", "ignore:classes past max_classes")

CUTS = [
    [("advance", 1000)],
    [("learn_one", 3), ("advance", 40), ("pandas", 7), ("advance", 1), ("polars", 60)],
    [("pandas", 1000)],
    [("polars", 130), ("learn_one", 1)],
]


def _kernel(bandwidth=None):
    return Gaussian(bandwidth, structured=True)


def _stream(n=330, labels=None, rng=None):
    """Inputs that come late and past the first group, strings, what is missing, zeros, and records without a label."""
    rng = rng or np.random.default_rng(5)
    xs, ys = [], []
    for i in range(n):
        x = {f"x{j}": float(value) for j, value in enumerate(rng.normal(size=6))}
        x |= {f"late{j}": float(j % 3) for j in range(i // 8) if rng.random() < 0.5}
        x |= {"text": f"v{rng.integers(0, 1 + i // 20)}", "flag": bool(rng.random() < 0.3), "x5": None if i % 9 else 1}
        xs.append(x)
        y = x["x0"] * x["x1"]
        ys.append(None if i % 7 == 6 else (f"class {int(3 * abs(y)) % 4}" if labels else y))
    return xs, ys


def _case(model):
    xs, ys = _stream(labels=isinstance(model, KernelClassifier))
    return Case(model, xs, ys, [1.0 + i % 2 for i in range(len(xs))])


MODELS = [
    KernelClassifier(kernel=_kernel(), seed=1, batch_size=8),
    KernelClassifier(kernel=_kernel(3.0), seed=1, batch_size=4, growth=DSG(), block_size=50),
    KernelRegressor(kernel=_kernel(), seed=1, batch_size=8, growth=UDSG(), standardize=False),
    KernelRegressor(kernel=_kernel(3.0), seed=1, batch_size=4, growth=CDSG(cap=3.0), cache_bytes=20_000),
]


# One learning path ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("model", "cut"), [(0, 0), (1, 2), (2, 3), (3, 1)], ids=lambda number: f"{number}")
def test_any_cut_of_a_stream_that_outgrows_its_first_group(model, cut):
    model = MODELS[model]
    case = _case(model)
    assert_any_cut(case, CUTS[cut])
    whole = case.fresh()
    whole.advance(case.xs, case.ys)
    stacks = Stacks(model.block_size, cache_bytes=0, seed=1)
    stacks.load_state(whole.__getstate__())
    assert len(stacks.groups(len(whole.input_names)).sizes) > 1


def test_unseen_inputs_of_a_record_without_a_label_stand_where_they_would_have_stood_alone():
    """Before a record of the same call that adds columns."""
    rng = np.random.default_rng(1)
    xs: list[dict[str, Any]] = [{f"x{j}": float(v) for j, v in enumerate(rng.normal(size=4))} for _ in range(40)]
    xs += [{**xs[0], "text": "a", "u": 1.0}, {**xs[1], "text": "b", "v": 2.0}, {**xs[2], "text": "a"}, {"text": "c"}]
    ys = [float(x["x0"]) for x in xs[:40]] + [None, 1.0, None, None]
    for standardize in (True, False):
        model = KernelRegressor(kernel=_kernel(2.0), seed=1, batch_size=8, standardize=standardize)
        assert_any_cut(Case(model, xs, ys, [1.0] * 44), [("advance", 44)])


# Copies and states ----------------------------------------------------------------------------------------------------


def _learned():
    model = MODELS[1].clone()
    model.advance(*_stream(120, labels=True))
    return model


@pytest.mark.parametrize(
    "size", [1, SMALLEST // 2, SMALLEST + 1, 3 * SMALLEST, 2 * LARGEST, -SMALLEST, float(SMALLEST), True, "32", None, 0]
)
def test_an_impossible_first_group_is_refused(size):
    """0 too, where there are blocks: their group was chosen before them."""
    model = _learned()
    state, before = model.__getstate__(), model.state_digest()
    assert state["first_group"] >= SMALLEST
    with pytest.raises(ValueError, match="'first_group' is missing or impossible"):
        model.clone().__setstate__({**state, "first_group": size})
    del state["first_group"]
    with pytest.raises(ValueError, match="'first_group' is missing or impossible"):
        model.clone().__setstate__(state)
    assert model.state_digest() == before


def test_the_first_group_is_chosen_with_the_first_mini_batch():
    model = KernelRegressor(kernel=_kernel(2.0), batch_size=10, seed=1)
    for i in range(10):
        assert model.__getstate__()["first_group"] == 0
        model.learn_one({f"x{j}": float(i + j) for j in range(40)}, 1.0)
    assert model.__getstate__()["first_group"] == 64
    assert "first_group" not in KernelRegressor().__getstate__()


# Refusals -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("machine", [KernelClassifier, KernelRegressor])
def test_float64_is_refused(machine):
    with pytest.raises(ValueError, match="float32, got dtype='float64'"):
        machine(kernel=_kernel(), dtype="float64")


# How well it learns ---------------------------------------------------------------------------------------------------


def _error(bandwidth, structured, seed, d):
    """The progressive squared error of a wave over the second half of 2,000 records."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(2000, d))
    ys = np.sin(2 * X[:, 0]) + 0.1 * rng.normal(size=2000)
    xs = [dict(zip(map(str, range(d)), row, strict=True)) for row in X.tolist()]
    model = KernelRegressor(kernel=Gaussian(bandwidth, structured=structured), precondition=False, seed=seed)
    predictions = np.array(model.advance(xs, ys.tolist()).predictions)
    return np.mean((predictions - ys)[1000:] ** 2) / ys[1000:].var()
