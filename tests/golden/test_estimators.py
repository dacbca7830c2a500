"""States of every version are read, predict what they predicted, and learn on."""

import gzip
import json
from pathlib import Path

import numpy as np
import pytest

from streamkernel.estimators.versions import READ, VERSION
from streamkernel.state import from_bytes, to_bytes
from tests.golden import estimators as golden

FOLDER = Path(__file__).parent
STATES = [(v, n) for v in READ for n in golden.MODELS if (FOLDER / f"estimators-v{v}" / f"{n}.bin.gz").exists()]


def _state(name, version=2):
    return from_bytes(gzip.decompress((FOLDER / f"estimators-v{version}" / f"{name}.bin.gz").read_bytes()))


def _close(mine, theirs):
    if isinstance(mine, dict):
        return list(mine) == list(theirs) and np.allclose(list(mine.values()), list(theirs.values()), atol=1e-6)
    return np.isclose(mine, theirs, rtol=1e-6)


def test_no_state_is_missing():
    plain = [name for name in golden.MODELS if name in golden.PLAIN or name.startswith("adaptive")]
    assert [name for version, name in STATES if version < VERSION] == plain * (len(READ) - 1)
    assert [name for version, name in STATES if version == VERSION] == list(golden.MODELS)


@pytest.mark.parametrize(("version", "name"), STATES)
def test_a_state_of_any_version_predicts_what_it_predicted_and_learns_on(version, name):
    state = _state(name, version)
    assert state["version"] == version
    model = golden.fresh(name)
    model.__setstate__(state)
    predicted = json.loads((FOLDER / f"estimators-v{version}" / "said.json").read_text())[name]
    assert all(map(_close, golden.predictions(model, name), predicted))
    assert model.__getstate__()["version"] == VERSION
    n = golden.MODELS[name][2]
    assert model.n_records == n
    # Here and there the same stream: what the old one lacks matters to outliers and changes only. A model that leaves
    # its steps open goes on with those of the state.
    grown = golden.fresh(name, **({"precondition": False} if name in golden.PLAIN else {}))
    for x, y in golden.records(name, 0, n):
        grown.learn_one(x, y)
    for x, y in golden.records(name, n, 400):
        model.learn_one(x, y)
        grown.learn_one(x, y)
    assert all(map(_close, golden.predictions(model, name), golden.predictions(grown, name)))
    twin = golden.fresh(name)
    twin.__setstate__(from_bytes(to_bytes(model.__getstate__())))
    assert twin.state_digest() == model.state_digest()


@pytest.mark.parametrize(
    ("field", "value"), [("alpha", np.inf), ("alpha", np.nan), ("beta", -np.inf), ("largest_gradient", np.inf)]
)
def test_what_had_diverged_in_version_2_goes_on(field, value):
    state = _state("regressor")
    if isinstance(state[field], np.ndarray):
        state[field].flat[0] = value
    else:
        state[field] = value
    model = golden.fresh("regressor")
    model.__setstate__(state)
    for x, y in golden.records("regressor", 310, 350):
        model.learn_one(x, y)
    assert np.isfinite(golden.predictions(model, "regressor")).all()
    assert model.__getstate__()["version"] == VERSION


@pytest.mark.parametrize("field", ["input_count", "input_m2", "target_count", "target_mean", "alpha", "last_margin"])
def test_a_damaged_state_of_version_2_is_refused(field):
    state = _state("regressor")
    for damaged in ({**state, field: "x"}, {name: value for name, value in state.items() if name != field}):
        if field == "last_margin" and field not in damaged:
            continue  # as it is of a model that never reused a block
        with pytest.raises(ValueError, match="does not fit"):
            golden.fresh("regressor").__setstate__(damaged)
