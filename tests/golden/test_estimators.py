"""States of earlier versions are read, say what they said, and learn on."""

import gzip
import json
from pathlib import Path

import numpy as np
import pytest

from streamkernel.state import from_bytes, to_bytes
from tests.golden import estimators as golden

FOLDER = Path(__file__).parent / "estimators-v2"
MODELS = pytest.mark.parametrize("name", golden.MODELS)


def _state(name):
    return from_bytes(gzip.decompress((FOLDER / f"{name}.bin.gz").read_bytes()))


def _close(mine, theirs):
    if isinstance(mine, dict):
        return list(mine) == list(theirs) and np.allclose(list(mine.values()), list(theirs.values()), atol=1e-6)
    return np.isclose(mine, theirs, rtol=1e-6)


@MODELS
def test_a_state_of_version_2_says_what_it_said_and_learns_on(name):
    record = _state(name)
    assert record["version"] == 2
    model = golden.fresh(name)
    model.__setstate__(record)
    assert all(map(_close, golden.predictions(model, name), json.loads((FOLDER / "said.json").read_text())[name]))
    n = golden.MODELS[name][2]
    assert model.n_records == n
    # Here and there the same stream: what the old one lacks matters to outliers and changes only.
    grown = golden.fresh(name)
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
    record = _state("regressor")
    if isinstance(record[field], np.ndarray):
        record[field].flat[0] = value
    else:
        record[field] = value
    model = golden.fresh("regressor")
    model.__setstate__(record)
    for x, y in golden.records("regressor", 310, 350):
        model.learn_one(x, y)
    assert np.isfinite(golden.predictions(model, "regressor")).all()
    assert model.__getstate__()["version"] == 3


@pytest.mark.parametrize("field", ["input_count", "input_m2", "target_count", "target_mean", "alpha", "last_margin"])
def test_a_damaged_state_of_version_2_is_refused(field):
    record = _state("regressor")
    for damaged in ({**record, field: "x"}, {name: value for name, value in record.items() if name != field}):
        if field == "last_margin" and field not in damaged:
            continue  # as it is of a model that never reused a block
        with pytest.raises(ValueError, match="does not fit"):
            golden.fresh("regressor").__setstate__(damaged)
