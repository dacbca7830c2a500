"""What `MetricLearner` is given: arguments, labels and records of any kind."""

import numpy as np
import pandas as pd
import pytest

from streamkernel.window import MetricLearner
from tests.window.metric_tasks import records_of_tasks


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"neighbors": 0}, "neighbors must be a whole number of at least 1, got 0"),
        ({"impostors": 1.5}, "impostors must be a whole number of at least 1, got 1.5"),
        ({"max_triplets": -1}, "max_triplets must be a whole number of at least 1, got -1"),
        ({"shared_l2": 0.0}, "shared_l2 must be a finite number above 0, got 0.0"),
        ({"pull": 0}, "pull must be a finite number above 0, got 0"),
        ({"l2": np.inf}, "l2 must be a finite number above 0, got inf"),
        ({"dual": 1000}, "dual must be at most 144, the number of triplets, got 1000"),
        ({"primal": 5}, "primal must be at most 4, the number of matrices, got 5"),
        ({"dual": 0}, "dual must be a whole number of at least 1, got 0"),
        ({"scale": -1.0}, 'scale must be "sampled" or "thumb" or a finite number above 0, got -1.0'),
        ({"tol": np.nan}, "tol must be a finite number above 0, got nan"),
        ({"balance": "both"}, 'balance must be "theorem", "data" or None, got \'both\''),
        ({"seed": "a"}, "seed must be a whole number or None, got 'a'"),
    ],
)
def test_arguments_that_cannot_be(arguments, message):
    with pytest.raises(ValueError, match=f"^{message}$"):
        MetricLearner(**arguments).fit(*records_of_tasks())


def test_data_that_cannot_be():
    X, y, tasks = records_of_tasks()
    learner = MetricLearner(max_passes=2, seed=1).fit(X, y, tasks)
    metric = learner.metric_
    broken = X.copy()
    broken[3, 1] = np.nan
    for given_, message in (
        ((broken, y), "X is nan at row 3, column 1"),
        ((X, y[:4]), "y must have a label for each of the 48 rows of X"),
        ((X, y, tasks[:4]), "tasks must have a label for each of the 48 rows of X"),
        ((X, np.where(y == 1, np.nan, 0.0)), "y has a label that is not finite"),
        ((X, np.zeros(48)), "y has no label with two records and another label"),
    ):
        with pytest.raises(ValueError, match=message):
            learner.fit(*given_)
    assert learner.metric_ is metric
    with pytest.raises(ValueError, match="task must be None or one of those fitted, got 'other'"):
        learner.distance(X[0], X[1], "other")
    with pytest.raises(ValueError, match="X must have 3 columns, as fitted"):
        learner.transform(X[:, :2])


@pytest.mark.parametrize("labels", [[None, 1], ["a", 1], [None, None], ["a", float("nan")]], ids=str)
@pytest.mark.parametrize("of", ["y", "tasks"])
def test_labels_without_order_are_refused(labels, of):
    X, given = np.eye(4), np.array([labels[0], labels[1]] * 2, object)
    arguments = {"y": [0, 0, 1, 1], "tasks": None, of: given}
    with pytest.raises(ValueError, match=f"{of} has (labels that cannot be sorted|a label that is not finite)"):
        MetricLearner(seed=1).fit(X, **arguments)


@pytest.mark.parametrize("size", [1e-300, 1e-150, 1e-75, 1e-20, 1e20, 1e34])
@pytest.mark.parametrize("shared_l2", [0.01, 1e300])
def test_records_of_any_size_have_a_finite_metric_and_a_gap_from_0(size, shared_l2):
    X = np.random.default_rng(1).normal(size=(30, 3))
    learner = MetricLearner(shared_l2=shared_l2, max_passes=5, seed=1).fit(X * size, X[:, 0] > 0)
    assert np.isfinite(learner.metric_).all()
    assert (learner.history_.gap >= 0).all()


def test_a_metric_is_asked_for_before_it_is_learned():
    for ask in (lambda: MetricLearner().transform([[1.0]]), lambda: MetricLearner().distance({0: 1.0}, {})):
        with pytest.raises(ValueError, match="no metric yet: call fit first"):
            ask()


@pytest.fixture(scope="module")
def named():
    X, y, _ = records_of_tasks()
    return MetricLearner(pull=1e-3, max_passes=5, seed=1).fit(pd.DataFrame(X, columns=["a", "b", "c"]), y)


@pytest.mark.parametrize("absent", [None, np.nan, "text", "3", np.float32("nan")], ids=repr)
def test_what_a_record_does_not_tell_is_0(named, absent):
    other = {"a": 1, "b": True, "c": -2.0}
    assert named.distance({"a": absent, "b": 2.0, "d": "x"}, other) == named.distance({"b": 2.0}, other) > 0
    assert named.distance({"a": absent}, {"a": absent}) == 0
    if not isinstance(absent, str):
        assert named.distance([absent, 2.0, 0.0], other) == named.distance({"b": 2.0}, other)


@pytest.mark.parametrize(
    ("record", "message"),
    [
        ({"b": np.inf}, "input 'b' is infinite: use a finite number, or None if it was not observed"),
        ({"b": [1.0]}, "a record must have numbers by the names of inputs_, or be 3 numbers, got "),
        ({"b": 1j}, "a record must have numbers by the names of inputs_, or be 3 numbers, got "),
        ([1.0, 2.0], r"a record must have numbers by the names of inputs_, or be 3 numbers, got \[1.0, 2.0\]"),
        (1.0, "a record must have numbers by the names of inputs_, or be 3 numbers, got 1.0"),
        (({"a": 1.0}, 2.0), "a record must have numbers by the names of inputs_, or be 3 numbers, got "),
    ],
    ids=repr,
)
def test_records_without_a_distance_are_refused(named, record, message):
    for pair in ((record, {}), ({"a": 1.0}, record)):
        with pytest.raises(ValueError, match=f"^{message}"):
            named.distance(*pair)


def test_a_single_task_has_its_metric_by_its_label():
    X, y, _ = records_of_tasks()
    learner = MetricLearner(pull=1e-3, max_passes=5, seed=1).fit(X, y, ["only"] * len(X))
    assert (learner.metrics_["only"] == learner.metric_).all()
    assert learner.distance(X[0], X[1], "only") == learner.distance(X[0], X[1]) > 0
    with pytest.raises(ValueError, match=r"task must be None or one of those fitted, got \['only'\]"):
        learner.distance(X[0], X[1], ["only"])
    with pytest.raises(ValueError, match="no task has a label with two records and another label"):
        learner.fit(X, y, y)
