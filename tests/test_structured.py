"""Growing machines with structured frequencies: one learning path, copies, refusals, and nothing lost by them."""

from typing import Any

import numpy as np
import pytest

from streamkernel import KernelClassifier, KernelRegressor
from streamkernel.growth import CDSG, DSG, UDSG
from streamkernel.kernels import Gaussian
from tests.laws.cases import Case
from tests.laws.cuts import assert_any_cut

pytestmark = pytest.mark.filterwarnings("ignore:inputs past max_inputs", "ignore:classes past max_classes")


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


MODELS = [
    KernelClassifier(kernel=_kernel(), seed=1, batch_size=8),
    KernelClassifier(kernel=_kernel(3.0), seed=1, batch_size=4, growth=DSG(), block_size=50),
    KernelRegressor(kernel=_kernel(), seed=1, batch_size=8, growth=UDSG(), standardize=False),
    KernelRegressor(kernel=_kernel(3.0), seed=1, batch_size=4, growth=CDSG(cap=3.0), cache_bytes=20_000),
]


# One learning path ----------------------------------------------------------------------------------------------------


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


def test_the_first_group_is_chosen_with_the_first_mini_batch():
    model = KernelRegressor(kernel=_kernel(2.0), batch_size=10, seed=1)
    for i in range(10):
        assert model.__getstate__()["first_group"] == 0
        model.learn_one({f"x{j}": float(i + j) for j in range(40)}, 1.0)
    assert model.__getstate__()["first_group"] == 64
    assert "first_group" not in KernelRegressor().__getstate__()


# Refusals -------------------------------------------------------------------------------------------------------------


# How well it learns ---------------------------------------------------------------------------------------------------
