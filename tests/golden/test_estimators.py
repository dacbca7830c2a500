"""The golden states are read, predict what they predicted, and learn on."""

import gzip
import json
from pathlib import Path

import numpy as np
import pytest

from streamkernel.estimators.base import VERSION
from streamkernel.state import from_bytes, to_bytes
from tests.golden import estimators as golden

FOLDER = Path(__file__).parent / f"estimators-v{VERSION}"
NAMES = pytest.mark.parametrize("name", golden.MODELS)


def _state(name):
    return from_bytes(gzip.decompress((FOLDER / f"{name}.bin.gz").read_bytes()))


def _close(mine, theirs):
    if isinstance(mine, dict):
        return list(mine) == list(theirs) and np.allclose(list(mine.values()), list(theirs.values()), atol=1e-6)
    return np.isclose(mine, theirs, rtol=1e-6)


def test_only_the_current_version_has_golden_states():
    assert sorted(FOLDER.parent.glob("estimators-v*")) == [FOLDER]
    assert {path.name for path in FOLDER.glob("*.gz")} == {f"{name}.bin.gz" for name in golden.MODELS}


@NAMES
def test_a_state_predicts_what_it_predicted_and_learns_on(name):
    model, n = golden.fresh(name), golden.MODELS[name][2]
    model.__setstate__(_state(name))
    said = json.loads((FOLDER / "said.json").read_text())[name]
    assert all(map(_close, golden.predictions(model, name), said))
    assert model.n_records == n
    grown = golden.fresh(name)
    xs, ys = zip(*golden.records(name, 0, n + 60), strict=True)
    grown.advance(xs[:n], ys[:n])
    for each in (model, grown):
        each.advance(xs[n:], ys[n:])
    assert all(map(_close, golden.predictions(model, name), golden.predictions(grown, name)))
    twin = golden.fresh(name)
    twin.__setstate__(from_bytes(to_bytes(model.__getstate__())))
    assert twin.state_digest() == model.state_digest()


@NAMES
def test_a_state_is_refused_by_another_kind_of_model(name):
    of_its_kind = type(golden.fresh(name))
    for other in ("adaptive_classifier", "adaptive_regressor", "classifier", "regressor_process"):
        if type(model := golden.fresh(other)) is not of_its_kind:
            with pytest.raises(ValueError, match="this state"):
                model.__setstate__(_state(name))
