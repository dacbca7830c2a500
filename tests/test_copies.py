"""Copies of a model continue as the model does, bit for bit, and share nothing with it."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streamkernel import AdaptiveKernelClassifier, KernelClassifier
from tests.copies import COPIES
from tests.stream_cases import cases
from tests.stream_cuts import Results, cuts, in_cuts, in_single_calls

pytestmark = pytest.mark.filterwarnings("ignore:inputs past max_inputs", "ignore:classes past max_classes")


FAMILIES = pytest.mark.parametrize("family", ["growing", "adaptive", "process"])


@pytest.mark.parametrize("copied", COPIES.values(), ids=COPIES)
@FAMILIES
@settings(max_examples=25)
@given(cut=cuts(), data=st.data())
def test_copies_continue_bit_for_bit(copied, family, cut, data):
    """From anywhere: in the middle of a mini-batch, of the warm-up, before the first record."""
    case = data.draw(cases(family))
    at = data.draw(st.integers(0, len(case.xs)))
    model = case.fresh()
    begun = replace(case, xs=case.xs[:at], ys=case.ys[:at], ws=case.ws[:at])
    in_cuts(model, begun, cut)
    twin = copied(model)
    assert type(twin) is type(model)
    assert twin.state_digest() == model.state_digest()
    before = model.state_digest()
    asked = case.xs[at:][:3]
    assert [twin.predict_one(x) for x in asked] == [model.predict_one(x) for x in asked]
    expected = in_single_calls(twin, case, start=at)
    assert model.state_digest() == before  # the twin shares nothing
    results = Results.nothing()
    in_cuts(model, case, cut, start=at, results=results)
    results.assert_same(expected)
    assert model.state_digest() == twin.state_digest()
    assert model.n_records == twin.n_records


@pytest.mark.parametrize("copied", COPIES.values(), ids=COPIES)
@pytest.mark.parametrize("model", [KernelClassifier(batch_size=2), AdaptiveKernelClassifier(n_features=8)])
def test_an_undetermined_seed_is_kept_by_copies(copied, model):
    model = model.clone()
    xs = [{"a": i / 3} for i in range(20)]
    model.advance(xs, [i % 2 for i in range(20)])
    twin = copied(model)
    assert twin.seed is None
    assert twin.advance(xs, [i % 2 for i in range(20)]).losses.tolist() == (
        model.advance(xs, [i % 2 for i in range(20)]).losses.tolist()
    )
    assert model.clone().__getstate__()["seed"] != model.__getstate__()["seed"]
