"""Two labels under a margin loss: which are taken, which side each has, and what is predicted before."""

import itertools
import math

import numpy as np
import pandas as pd
import pytest
from scipy import special

from streamkernel import losses
from tests.parts import scores_of
from tests.records.one_input import TWO_SIDED, classifier, inputs


def test_two_labels_of_any_kind(subtests):
    sides = [
        (False, True),
        (0, 1),
        ("a", "b"),
        ("b", "a"),
        (np.bool_(False), np.bool_(True)),
        (1.5, 2.5),
        (-1, 1),
        (True, "x"),
        (("a", 1), ("b", 2)),
    ]
    for (negative, positive), loss in zip(sides, itertools.cycle(TWO_SIDED), strict=False):
        with subtests.test(loss=loss, negative=negative, positive=positive):
            model = classifier(loss)
            xs = inputs(400)
            ys = [positive if x["a"] > 0 else negative for x in xs]
            outcome = model.advance(xs, ys)
            assert np.mean([p == y for p, y in zip(outcome.predictions[100:], ys[100:], strict=True)]) > 0.9
            assert set(model.classes) == {negative, positive}
            assert not any(isinstance(label, np.generic) for label in model.classes)
            assert model._multiclass is False
            assert all(math.isclose(sum(p.values()), 1) for p in outcome.probabilities[2:])
            for p in outcome.probabilities[200:]:
                assert set(p) == {negative, positive}


@pytest.mark.parametrize(
    ("labels", "classes"),
    [
        ([], [False, True]),
        ([True], [False, True]),
        ([False, True], [False, True]),
        ([True, False], [False, True]),
        ([1, 0], [0, 1]),
        (["a"], ["a", True]),
        (["a", "b"], ["a", "b"]),
        (["b", "a", "b"], ["b", "a"]),
        ([True, "a"], ["a", True]),
        ([False, "a"], [False, "a"]),
        (["a", True], ["a", True]),
        (["a", False], ["a", False]),
        ([True, 1, False, 0], [False, True]),
    ],
    ids=str,
)
def test_false_and_true_until_another_label_arrives(labels, classes):
    model = classifier(losses.Log())
    for label in labels:
        model.learn_one({"a": 1.0}, label)
    assert model.classes == classes


@pytest.mark.parametrize("loss", TWO_SIDED, ids=lambda loss: type(loss).__name__)
def test_the_probability_is_the_sigmoid_of_the_score(loss):
    model = classifier(loss, dtype="float64")
    xs = inputs(50)
    model.advance(xs, [x["a"] > 0 for x in xs])
    (score,) = scores_of(model, {"a": 0.3})
    assert model.predict_proba_one({"a": 0.3})[True] == pytest.approx(special.expit(score), rel=1e-12)
    # The own loss of a record is that of its score.
    outcome = model.advance([{"a": 0.3}], [False])
    assert outcome.losses[0] == pytest.approx(float(loss(np.zeros(1), np.array([score]))[0]), rel=1e-6)


@pytest.mark.parametrize("loss", TWO_SIDED, ids=lambda loss: type(loss).__name__)
def test_a_third_class_is_one_clear_error_that_changes_nothing(loss):
    model = classifier(loss)
    model.advance(inputs(10), ["a", "b"] * 5)
    before = model.state_digest()
    calls = [
        lambda: model.learn_one({"new": 1.0}, "c"),
        lambda: model.advance(inputs(9), ["a"] * 8 + ["c"]),
        lambda: model.advance(inputs(3), [None, "c", None]),
        lambda: model.learn_many(pd.DataFrame({"a": [1.0, 2.0]}), ["a", "c"]),
    ]
    for call in calls:
        with pytest.raises(ValueError, match=r"'c' is a third class after 'a' and 'b'.*OneVsRest"):
            call()
        assert model.state_digest() == before
