"""States of every version are read, predict what they predicted, and learn on."""

import gzip
import json
from pathlib import Path

import numpy as np
import pytest

from streamkernel.estimators.versions import READ, VERSION
from streamkernel.state import from_bytes, to_bytes
from tests.adaptive.experts import without_stacks
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
    for version in READ:
        of_6 = [name for name in golden.MODELS if name not in golden.SINCE_7]
        of_4 = [name for name in of_6 if name not in golden.SINCE_5]
        wanted = {2: plain, 3: plain, 4: of_4, 5: of_6, 6: of_6}.get(version, list(golden.MODELS))
        assert [name for v, name in STATES if v == version] == wanted


def _said(name, version):
    return json.loads((FOLDER / f"estimators-v{version}" / "said.json").read_text())[name]


@pytest.mark.parametrize(("version", "name"), STATES)
def test_a_state_of_any_version_predicts_what_it_predicted_and_learns_on(version, name):
    state = _state(name, version)
    assert state["version"] == version
    # A model without the experts that came with version 5.
    before = {"memory": 0} if name.startswith("adaptive") and version < 5 else {}
    model = golden.fresh(name, **before)
    model.__setstate__(state)
    predicted = _said(name, version)
    assert all(map(_close, golden.predictions(model, name), predicted))
    assert model.__getstate__()["version"] == VERSION
    n = golden.MODELS[name][2]
    assert model.n_records == n
    # Here and there the same stream: what the old one lacks matters to outliers and changes only. A model that leaves
    # its steps open goes on with those of the state.
    grown = golden.fresh(name, **before, **({"precondition": False} if name in golden.PLAIN and version < 5 else {}))
    for x, y in golden.records(name, 0, n):
        golden.learn(grown, x, y)
    if version < 6 and name in golden.ADAPTIVE:
        xs, ys = zip(*golden.records(name, n, 2_500), strict=True)
        # Up to version 4 trees and metrics came at once, and there are no stacks before version 6, so that what was
        # learnt so far is not quite the same.
        losses, expected = (one.advance(xs, ys).losses for one in (model, grown))
        assert losses.mean() == pytest.approx(expected.mean(), rel=0.05)
    else:
        for x, y in golden.records(name, n, 400):
            golden.learn(model, x, y)
            golden.learn(grown, x, y)
        assert all(map(_close, golden.predictions(model, name), golden.predictions(grown, name)))
    twin = golden.fresh(name, **before)
    twin.__setstate__(from_bytes(to_bytes(model.__getstate__())))
    assert twin.state_digest() == model.state_digest()


ADAPTIVE = pytest.mark.parametrize("name", ["adaptive_classifier", "adaptive_regressor"])


@ADAPTIVE
@pytest.mark.parametrize("version", [2, 3, 4])
def test_experts_that_came_since_join_and_do_good(version, name):
    """They have no weight at all where a state was read, so that it predicts what it predicted."""
    model, without = golden.fresh(name), golden.fresh(name, memory=0)
    for one in (model, without):
        one.__setstate__(_state(name, version))
    assert all(map(_close, golden.predictions(model, name), _said(name, version)))
    came = set(model.expert_weights) - set(without.expert_weights)
    assert len(came) >= 4
    assert {model.expert_weights[one] for one in came} == {0.0}
    xs, ys = zip(*golden.records(name, golden.MODELS[name][2], 1_600), strict=True)
    losses = [one.advance(xs, ys).losses for one in (model, without)]
    assert np.isfinite(losses[0]).all()
    # Beside the other experts: the stacks, which are made of all, came too.
    assert sum(without_stacks(model)[one] for one in came) > 0.1
    assert losses[0].mean() < losses[1].mean()
    again = golden.fresh(name)
    again.__setstate__(from_bytes(to_bytes(model.__getstate__())))
    assert again.state_digest() == model.state_digest()


@pytest.mark.parametrize("name", golden.ADAPTIVE)
def test_stacks_join_a_state_of_version_5(name):
    """They say at first what has been predicted so far."""
    model = golden.fresh(name)
    model.__setstate__(_state(name, 5))

    def share():
        return sum(weight for one, weight in model.expert_weights.items() if "stack" in one)

    assert sum(model.expert_weights.values()) == pytest.approx(1)
    model.advance(*zip(*golden.records(name, golden.MODELS[name][2], 2_500), strict=True))
    assert share() > (0.7 if len(model.expert_weights) > 6 else 0.5)  # of few experts there is less to be made


@pytest.mark.parametrize(("version", "name"), STATES)
def test_a_state_of_any_version_is_refused_by_another_kind_of_model(version, name):
    of_its_kind = type(golden.fresh(name))
    for other in ("adaptive_classifier", "adaptive_regressor", "classifier", "regressor_process"):
        if type(model := golden.fresh(other)) is not of_its_kind:
            with pytest.raises(ValueError, match="this state"):
                model.__setstate__(_state(name, version))


@pytest.mark.parametrize("version", [3, 6])
def test_a_scale_below_0_of_a_version_before_7_is_read(version):
    """Steps that decay past 0 left one; its sign is that of the coefficients now."""
    state = _state("regressor", version)
    state |= {"scale": -state["scale"], "alpha": -state["alpha"]}
    model = golden.fresh("regressor")
    model.__setstate__(state)
    assert all(map(_close, golden.predictions(model, "regressor"), _said("regressor", version)))
    assert model.__getstate__()["scale"] > 0


def test_a_version_that_is_none_is_shown_in_one_line():
    with pytest.raises(ValueError, match=f"version {'1' + '0' * 79}[.]{{3}}, and"):
        golden.fresh("classifier").__setstate__({**_state("classifier"), "version": 10**400})


@pytest.mark.parametrize("field", ["losses", "lagged_losses"])
def test_a_damaged_adaptive_state_of_version_5_is_refused(field):
    state = _state("regressor_lags", 5)
    whole = state.pop(field)
    for wrong in ({}, {field: "x"}, {field: whole[:-1]}, {field: whole[None]}, {field: np.full_like(whole, np.nan)}):
        with pytest.raises(ValueError, match="does not fit"):
            golden.fresh("regressor_lags").__setstate__({**state, **wrong})


@pytest.mark.parametrize("field", ["losses", "lagged_losses"])
def test_a_state_of_version_5_that_claims_very_many_experts_is_refused(field):
    """Their stacks' matrices would take some hundred terabytes."""
    state = _state("regressor_lags", 5)
    with pytest.raises(ValueError, match=f"its field '{field}'"):
        golden.fresh("regressor_lags").__setstate__({**state, field: np.zeros(10**7)})


@ADAPTIVE
def test_records_without_weight_are_kept_no_more(name):
    state, model = _state(name, 4), golden.fresh(name)
    state["recent_weights"][5:9] = 0.0
    model.__setstate__(state)
    kept = np.delete(np.arange(40), slice(5, 9))
    new = model.__getstate__()
    for field in ("recent_rows", "recent_targets", "recent_weights"):
        assert np.array_equal(new[field], state[field][kept])
    assert not new["recent_residuals"].any()
    assert len(new["recent_residuals"]) == len(kept)


@ADAPTIVE
@pytest.mark.parametrize(
    "field",
    [
        "heads_P",
        "heads_W",
        "linear_W",
        "tree_features",
        "losses",
        "recent_rows",
        "recent_targets",
        "recent_weights",
    ],
)
def test_a_damaged_adaptive_state_of_version_4_is_refused(name, field):
    state = _state(name, 4)
    whole = state.pop(field)
    damaged = [{}, {field: "x"}, {field: whole[..., :-1]}, {field: whole[None]}]
    if whole.dtype.kind == "f":
        damaged.append({field: np.full_like(whole, np.nan)})
    for wrong in damaged:
        with pytest.raises(ValueError, match="does not fit"):
            golden.fresh(name).__setstate__({**state, **wrong})


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
        golden.learn(model, x, y)
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
