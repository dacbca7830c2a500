"""Labels under the softmax: which are taken, when a class joins, and what is predicted before."""

import datetime
import math
import warnings

import numpy as np
import pytest

from streamkernel import losses
from tests.records.one_input import classifier, inputs


def test_classes_join_on_arrival():
    model = classifier()
    assert model.predict_one({"a": 1.0}) is None
    assert model.predict_proba_one({"a": 1.0}) == {}
    labels = ["x", "x", "y", None, "z", "x"]
    outcome = model.advance(inputs(6), labels)
    assert [list(p) for p in outcome.probabilities] == [[], ["x"], ["x"], ["x", "y"], ["x", "y"], ["x", "y", "z"]]
    assert outcome.predictions[0] is None
    assert model.classes == ["x", "y", "z"]
    assert outcome.losses.tolist()[:2] == [0, 0]
    assert outcome.losses[2] == pytest.approx(math.log(2))  # the one that joins counts
    assert math.isnan(outcome.losses[3])
    assert outcome.losses[4] == pytest.approx(math.log(3))


def test_classes_past_the_limit_are_predicted_only_counted_and_warned_of_once():
    model = classifier(max_classes=2)
    model.advance(inputs(2), ["a", "b"])
    before = model.__getstate__()["input_moments"]
    with pytest.warns(RuntimeWarning, match="^classes past max_classes") as caught:
        outcome = model.advance([{"a": 9.0}] * 3, ["c", "d", "c"])
    assert len(caught) == 1
    assert caught[0].filename == __file__
    assert model.n_ignored_labels == 3
    assert model.n_records == 2
    assert np.isnan(outcome.losses).all()
    assert list(outcome.probabilities[0]) == ["a", "b"]
    assert model.__getstate__()["input_moments"].tolist() == before.tolist()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.learn_one({"a": 9.0, "new": 1.0}, "e")
    assert model.n_ignored_labels == 4
    assert model.input_names == ["a"]
    assert model.classes == ["a", "b"]


@pytest.mark.parametrize(
    "label", ["", "é", "\ud800", 0, -7, 2**63, 2.5, True, ("a", 1), np.int8(3), np.str_("n")], ids=repr
)
def test_a_label_of_any_plain_kind(label):
    model = classifier()
    model.advance(inputs(8), ["other", label] * 4)
    assert label in model.classes
    assert not isinstance(model.classes[1], np.generic)
    back = model.clone()
    back.__setstate__(model.__getstate__())
    assert back.classes == model.classes


@pytest.mark.parametrize("loss", [None, losses.Log()], ids=["softmax", "log"])
@pytest.mark.parametrize("label", [math.nan, np.float32("nan"), b"a", [1], datetime.date(2020, 1, 1), 1j], ids=repr)
def test_what_is_no_label_is_refused_and_changes_nothing(loss, label):
    model = classifier(loss)
    before = model.state_digest()
    with pytest.raises(ValueError, match=r"label is NaN|names and labels are"):
        model.advance(inputs(3), ["a", label, "b"])
    assert model.state_digest() == before
