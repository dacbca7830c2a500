"""Labels and numbers to learn: which are taken, what joins when, and what is predicted before."""

import datetime
import decimal
import enum
import math
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from river.optim.losses import Absolute, Hinge, Huber, Squared
from scipy import special

from streamkernel import KernelClassifier, KernelRegressor, losses
from streamkernel.compute.moments import COUNT, MEAN, deviation
from streamkernel.kernels import Gaussian
from streamkernel.records.targets import Numbers
from tests import naive
from tests.parts import scores_of

TWO_SIDED = [losses.Log(), Hinge(), losses.SquaredHinge()]
NUMERIC = [None, Squared(), Absolute(), Huber(1.0), losses.EpsilonInsensitive(), losses.Quantile(0.8)]


def _classifier(loss=None, **given):
    return KernelClassifier(
        **{"loss": loss, "kernel": Gaussian(0.5), "block_size": 8, "batch_size": 4, "seed": 1, **given}
    )


def _regressor(loss=None, **given):
    return KernelRegressor(
        **{"loss": loss, "kernel": Gaussian(0.5), "block_size": 8, "batch_size": 4, "seed": 1, **given}
    )


def _xs(n, seed=0):
    return [{"a": float(v)} for v in np.random.default_rng(seed).normal(size=n)]


# Two sides ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("loss", TWO_SIDED, ids=lambda loss: type(loss).__name__)
@pytest.mark.parametrize(
    ("negative", "positive"),
    [
        (False, True),
        (0, 1),
        ("a", "b"),
        ("b", "a"),
        (np.bool_(False), np.bool_(True)),
        (1.5, 2.5),
        (-1, 1),
        (True, "x"),
        (("a", 1), ("b", 2)),
    ],
    ids=str,
)
def test_two_labels_of_any_kind(loss, negative, positive):
    model = _classifier(loss)
    xs = _xs(400)
    outcome = model.advance(xs, [positive if x["a"] > 0 else negative for x in xs])
    right = [p == (positive if x["a"] > 0 else negative) for x, p in zip(xs, outcome.predictions, strict=True)]
    assert np.mean(right[100:]) > 0.9
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
    model = _classifier(losses.Log())
    for label in labels:
        model.learn_one({"a": 1.0}, label)
    assert model.classes == classes


def test_what_two_sides_say_before_both_are_known():
    model = _classifier(losses.Log())
    assert model.predict_proba_one({"a": 1.0}) == {False: 0.5, True: 0.5}
    assert model.predict_one({"a": 1.0}) is False
    model.learn_one({"a": 1.0}, "spam")
    assert model.predict_proba_one({"a": 1.0}) == {"spam": 1.0}
    assert model.predict_one({"a": 1.0}) == "spam"
    model.learn_one({"a": 1.0}, "ham")
    assert model.predict_proba_one({"a": 1.0}) == {"spam": 0.5, "ham": 0.5}
    boolean = _classifier(losses.Log())
    boolean.learn_one({"a": 1.0}, True)
    assert set(boolean.predict_proba_one({"a": 1.0})) == {False, True}


@pytest.mark.parametrize("loss", TWO_SIDED, ids=lambda loss: type(loss).__name__)
def test_the_probability_is_the_sigmoid_of_the_score(loss):
    model = _classifier(loss, dtype="float64")
    xs = _xs(50)
    model.advance(xs, [x["a"] > 0 for x in xs])
    (score,) = scores_of(model, {"a": 0.3})
    assert model.predict_proba_one({"a": 0.3})[True] == pytest.approx(special.expit(score), rel=1e-12)
    # The own loss of a record is that of its score.
    outcome = model.advance([{"a": 0.3}], [False])
    assert outcome.losses[0] == pytest.approx(float(loss(np.zeros(1), np.array([score]))[0]), rel=1e-6)


@pytest.mark.parametrize("loss", TWO_SIDED, ids=lambda loss: type(loss).__name__)
def test_a_third_class_is_one_clear_error_that_changes_nothing(loss):
    model = _classifier(loss)
    model.advance(_xs(10), ["a", "b"] * 5)
    before = model.state_digest()
    calls = [
        lambda: model.learn_one({"new": 1.0}, "c"),
        lambda: model.advance(_xs(9), ["a"] * 8 + ["c"]),
        lambda: model.advance(_xs(3), [None, "c", None]),
        lambda: model.learn_many(pd.DataFrame({"a": [1.0, 2.0]}), ["a", "c"]),
    ]
    for call in calls:
        with pytest.raises(ValueError, match=r"label 'c' is a third class after 'a' and 'b'.*OneVsRestClassifier"):
            call()
        assert model.state_digest() == before


def test_a_third_class_within_one_call():
    model = _classifier(losses.Log())
    before = model.state_digest()
    with pytest.raises(ValueError, match="label 'c' is a third class after 'a' and 'b'"):
        model.advance(_xs(3), ["a", "b", "c"])
    assert model.state_digest() == before
    model.advance(_xs(2), ["c", "b"])  # the failed call named no class
    assert model.classes == ["c", "b"]


# Classes --------------------------------------------------------------------------------------------------------------


def test_classes_join_on_arrival():
    model = _classifier()
    assert model.predict_one({"a": 1.0}) is None
    assert model.predict_proba_one({"a": 1.0}) == {}
    labels = ["x", "x", "y", None, "z", "x"]
    outcome = model.advance(_xs(6), labels)
    assert [list(p) for p in outcome.probabilities] == [[], ["x"], ["x"], ["x", "y"], ["x", "y"], ["x", "y", "z"]]
    assert outcome.predictions[0] is None
    assert model.classes == ["x", "y", "z"]
    assert outcome.losses.tolist()[:2] == [0, 0]
    assert outcome.losses[2] == pytest.approx(math.log(2))  # the one that joins counts
    assert math.isnan(outcome.losses[3])
    assert outcome.losses[4] == pytest.approx(math.log(3))


def test_a_class_that_joins_late_begins_at_zero():
    model = _classifier(standardize=False)
    xs = _xs(200)
    model.advance(xs, [x["a"] > 0 for x in xs])
    scores = scores_of(model, {"a": 1.0})
    assert len(scores) == 2
    model.learn_one({"a": 1.0}, "late")
    probabilities = model.predict_proba_one({"a": 1.0})
    expected = special.softmax([*scores, 0.0])
    assert list(probabilities.values()) == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize("n_classes", [2, 3, 12])
def test_softmax_learns_classes(n_classes):
    rng = np.random.default_rng(0)
    labels = rng.integers(0, n_classes, 1500)
    xs = [
        {"a": float(3 * np.cos(6.28 * y / n_classes) + v), "b": float(3 * np.sin(6.28 * y / n_classes) + w)}
        for y, (v, w) in zip(labels, 0.2 * rng.normal(size=(1500, 2)), strict=True)
    ]
    model = KernelClassifier(seed=1)
    outcome = model.advance(xs, labels.tolist())
    right = [p == y for p, y in zip(outcome.predictions, labels, strict=True)]
    assert np.mean(right[500:]) > 0.85
    assert model._multiclass is True


def test_classes_past_the_limit_are_predicted_only_counted_and_warned_of_once():
    model = _classifier(max_classes=2)
    model.advance(_xs(2), ["a", "b"])
    before = model.__getstate__()["input_moments"]
    with pytest.warns(RuntimeWarning, match="classes past max_classes are predicted only") as caught:
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
    model = _classifier()
    model.advance(_xs(8), ["other", label] * 4)
    assert label in model.classes
    assert not isinstance(model.classes[1], np.generic)
    back = model.clone()
    back.__setstate__(model.__getstate__())
    assert back.classes == model.classes


class Colour(str, enum.Enum):  # noqa: UP042 - its str() is "Colour.RED", not its value
    RED = "red"
    BLUE = "blue"


def test_a_label_of_a_subclass_is_a_plain_value():
    for loss in (None, losses.Log()):
        model = _classifier(loss)
        model.advance(_xs(4), [Colour.RED, "red", Colour.BLUE, "blue"])
        assert model.classes == ["red", "blue"]
        assert {type(label) for label in model.classes} == {str}


@pytest.mark.parametrize("loss", [None, losses.Log()], ids=["softmax", "log"])
@pytest.mark.parametrize("label", [math.nan, np.float32("nan"), b"a", [1], datetime.date(2020, 1, 1), 1j], ids=repr)
def test_what_is_no_label_is_refused_and_changes_nothing(loss, label):
    model = _classifier(loss)
    before = model.state_digest()
    with pytest.raises(ValueError, match=r"label is NaN|names and labels are"):
        model.advance(_xs(3), ["a", label, "b"])
    assert model.state_digest() == before


@pytest.mark.parametrize("make", [pd.Series, pl.Series, np.array, list, tuple], ids=lambda make: make.__name__)
@pytest.mark.parametrize("labels", [["a", "b", "a"], [True, False, True], [3, 4, 3]], ids=str)
def test_learn_many_takes_labels_in_any_box(make, labels):
    one, other = _classifier(), _classifier()
    X = pd.DataFrame({"a": [1.0, 2.0, 3.0]})
    one.learn_many(X if make is not pl.Series else pl.DataFrame({"a": [1.0, 2.0, 3.0]}), make(labels))
    other.advance([{"a": v} for v in (1.0, 2.0, 3.0)], labels)
    assert one.state_digest() == other.state_digest()


# Numbers --------------------------------------------------------------------------------------------------------------


@given(st.lists(st.one_of(st.none(), st.floats(-1e6, 1e6)), min_size=1, max_size=40))
def test_target_moments(targets):
    model = _regressor()
    model.advance(_xs(len(targets)), targets)
    twin = naive.Moments(naive.TARGETS)
    naive.standardise([y for y in targets if y is not None], twin)
    moments = model.__getstate__()["target_moments"]
    assert moments[COUNT] == len(twin)
    assert moments[MEAN] == pytest.approx(twin.mean, abs=1e-6)
    assert deviation(moments) == pytest.approx(twin.deviation, abs=1e-6 + 1e-6)


def test_predictions_use_the_moments_before_and_training_those_after():
    targets = [5.0, 9.0, 1.0, None, 4.0]
    encoded = Numbers(Squared()).admit(targets)
    before = [[], [5.0], [5.0, 9.0], [5.0, 9.0, 1.0], [5.0, 9.0, 1.0]]
    assert np.allclose(encoded.before, [[np.mean(b), np.std(b)] if b else [0, 0] for b in before])
    after = [[5.0], [5.0, 9.0], [5.0, 9.0, 1.0], [5.0, 9.0, 1.0, 4.0]]
    expected = [(b[-1] - np.mean(b)) / (np.std(b) or 1) for b in after]
    assert np.allclose(encoded.y[[0, 1, 2, 4]], expected)
    assert math.isnan(encoded.y[3])


def test_a_regressor_predicts_the_mean_before_its_first_step():
    model = _regressor(batch_size=100)
    assert model.predict_one({"a": 1.0}) == 0
    model.advance(_xs(3), [4.0, 6.0, 20.0])
    assert model.predict_one({"a": 1.0}) == pytest.approx(10)


@pytest.mark.parametrize("loss", NUMERIC, ids=lambda loss: type(loss).__name__)
def test_regressors_learn_in_the_targets_own_units(loss):
    xs = _xs(1500)
    targets = [1e4 + 500 * math.sin(2 * x["a"]) for x in xs]
    model = KernelRegressor(loss=loss, seed=1)
    outcome = model.advance(xs, targets)
    errors = np.abs(np.array(outcome.predictions) - targets)[750:]
    spread = np.abs(np.array(targets) - np.mean(targets)).mean()
    assert errors.mean() < 0.75 * spread


@pytest.mark.parametrize("loss", NUMERIC, ids=lambda loss: type(loss).__name__)
def test_the_own_loss_is_that_of_the_standardised_target(loss):
    model = _regressor(loss, dtype="float64")
    xs = _xs(60)
    model.advance(xs, [x["a"] * 3 for x in xs])
    (score,) = scores_of(model, {"a": 0.3})
    outcome = model.advance([{"a": 0.3}, {"a": 0.3}], [2.0, None])
    moments = model.__getstate__()["target_moments"]
    standardised = (2.0 - moments[MEAN]) / deviation(moments)
    exact = (loss or Squared())(np.array([standardised]), np.array([score]))[0]
    assert outcome.losses[0] == pytest.approx(exact, rel=1e-6)
    assert math.isnan(outcome.losses[1])


@pytest.mark.parametrize("n", [1, 50])
def test_a_constant_target_is_predicted_and_leaves_no_error(n):
    model = _regressor()
    outcome = model.advance(_xs(n), [7.0] * n)
    assert outcome.losses.tolist() == [0.0] * n
    assert model.predict_one({"a": 3.0}) == pytest.approx(7.0)


@pytest.mark.parametrize(
    "target",
    [3, True, np.float32(0.5), np.int64(4), np.bool_(True), decimal.Decimal("1.5"), 10**30, -0.0],
    ids=lambda target: f"{type(target).__name__}-{target}",
)
def test_a_target_of_any_numeric_type(target):
    one, other = _regressor(), _regressor()
    one.advance(_xs(2), [1.0, target])
    other.advance(_xs(2), [1.0, float(target)])
    assert one.state_digest() == other.state_digest()


@pytest.mark.parametrize(
    "target",
    [
        math.nan,
        math.inf,
        -math.inf,
        10**400,
        np.float32("inf"),
        decimal.Decimal("nan"),
        decimal.Decimal("1e400"),
        pd.NA,
        "1.5",
        np.str_("1.5"),
        b"1",
        1j,
        np.complex64(1),
        [1.0],
        datetime.datetime(2020, 1, 1),
        np.datetime64("2020-01-01", "ns"),
        np.timedelta64(3, "ns"),
    ],
    ids=lambda target: f"{type(target).__name__}-{str(target)[:20]}",
)
def test_what_is_no_finite_number_is_refused_and_changes_nothing(target):
    model = _regressor()
    model.advance(_xs(6), [float(i) for i in range(6)])
    before = model.state_digest()
    for targets in ([1.0, target, 2.0], [None, target, None]):
        with pytest.raises(ValueError, match=r"^the target .* is not a finite number: give one, or None where"):
            model.advance([{"a": 1.0}, {"new": 1.0}, {"a": 2.0}], targets)
        assert model.state_digest() == before


@pytest.mark.parametrize("target", [1e200, -1e308, 1.7976931348623157e308])
@pytest.mark.parametrize("loss", NUMERIC, ids=lambda loss: type(loss).__name__)
def test_one_huge_target_does_not_end_the_model(loss, target):
    model = _regressor(loss)
    xs = _xs(100)
    outcome = model.advance(xs, [target if i == 50 else x["a"] for i, x in enumerate(xs)])
    assert np.isfinite(outcome.predictions).all()
    assert np.isfinite(outcome.losses).all()
    assert math.isfinite(model.predict_one({"a": 1.0}))


@pytest.mark.parametrize("loss", [*TWO_SIDED, None], ids=lambda loss: type(loss).__name__)
def test_weights_multiply_the_gradient(loss):
    """Weight 0 moves moments only, weight 2 is twice the pull: with one record a step, twice the coefficients."""
    arguments = {"batch_size": 1, "dtype": "float64", "standardize": False}
    models = [_classifier(loss, **arguments) for _ in range(3)]
    for model, w in zip(models, (0.0, 1.0, 2.0), strict=True):
        model.advance([{"a": 1.0}] * 2, [False, True], [0.0, 0.0])
        model.learn_one({"a": 1.0}, True, w=w)
    assert [model.n_blocks for model in models] == [0, 1, 1]
    _, once, twice = (model.__getstate__() for model in models)
    assert np.allclose(twice["alpha"], 2 * once["alpha"])
    assert models[0].n_records == 3
