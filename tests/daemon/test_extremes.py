"""Numbers of any magnitude: predictions, metrics and checkpoints stay finite, and what is not is counted and logged."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from river import base

from streamkernel.daemon.labels import snapshot
from streamkernel.daemon.labels.join import LabelJoin
from streamkernel.daemon.stream.quality import REPORTS, Quality
from streamkernel.daemon.stream.record_batch import RecordBatch
from streamkernel.daemon.stream.river_learner import learner_for
from tests.daemon.conftest import Home, Launcher

FINITE = st.floats(allow_nan=False, allow_infinity=False)
STREAM = st.lists(FINITE | st.sampled_from([0.0, 1.0, 1.3e154, -1.7e308, 1.7976931348623157e308, 5e-324]), max_size=30)


def all_finite(values: Any) -> bool:
    return all(map(math.isfinite, values))


@given(STREAM)
@example([0.0, 5e-324, 0.0])
@example([1e200] * 3)
def test_the_moments_of_late_targets_are_finite_and_come_back(targets: list[float]) -> None:
    join = LabelJoin("id", "y", 60.0, 10)
    for target in targets:
        join.moments = join.moments.after(target)
        assert all_finite(join.moments)
        assert 0 <= join.moments.deviation < math.inf
    header, blob = snapshot.dump(join)
    again = LabelJoin("id", "y", 60.0, 10)
    snapshot.restore(again, json.loads(json.dumps(header, allow_nan=False)), blob)
    assert again.moments == join.moments


@given(STREAM, STREAM, st.integers(1, 40))
@example([1.3e154] * 3, [0.0] * 3, 2)
@example([1.7e308] * 9, [-1.7e308] * 9, 40)
@example([0.0, 5e-324], [1.7e308] * 2, 40)
def test_no_report_metric_of_finite_numbers_is_infinite(
    targets: list[float], predicted: list[float], window: int
) -> None:
    n = min(len(targets), len(predicted))
    quality = Quality("regression", REPORTS["regression"], window)
    for start in range(0, n, 7):
        quality.add(targets[start : min(n, start + 7)], predicted[start : min(n, start + 7)], None)
        assert all_finite(quality.overall().values())
        assert all_finite(quality.rolling().values())


class Constant(base.Regressor):
    """Predicts what it is given, in turn, and remembers what it was given to learn."""

    def __init__(self, *says: float) -> None:
        self.says = list(says)
        self.learned: list[float] = []

    def predict_one(self, _x: dict[str, Any]) -> float:
        return self.says[len(self.learned) % len(self.says)]

    def learn_one(self, _x: dict[str, Any], y: float) -> None:
        self.learned.append(y)


def test_a_prediction_that_is_no_finite_number_is_none_and_counted() -> None:
    model = Constant(1.0, math.inf, math.nan, 1.6e308)
    learned = learner_for(model).advance(RecordBatch(inputs=[{}] * 4, targets=[1e200, 2.0, 3.0, -1e200]))
    assert learned.result.predictions == [1.0, None, None, 1.6e308]
    assert (learned.n_not_finite, learned.n_clipped) == (2, 2)
    assert model.learned == [1e100, 2.0, 3.0, -1e100]
    assert [math.isfinite(loss) for loss in learned.result.losses] == [True, False, False, True]


class TestClasses:
    """Neither many labels nor labels of one hash cost memory or time; counted, not timed."""

    def test_labels_past_the_limit_count_as_one(self) -> None:
        quality = Quality("classification", ["accuracy", "macro_f1"], 100, max_classes=2)
        quality.add(["a", "b", "c", "d", "e", "a"], ["a", "b", "c", "x", "a", "e"], None)
        # Classes a, b and the others; of the others c was right, d and e were not, and twice others were predicted.
        assert quality.overall()["accuracy"] == pytest.approx(3 / 6)
        assert quality.overall()["macro_f1"] == pytest.approx((2 / 4 + 1 + 2 / 6) / 3)
        assert quality.rolling() == quality.overall()


MODEL = """
from river import linear_model

class Overflowing(linear_model.LinearRegression):
    def predict_one(self, x):
        return float("inf") if x["a"] == 7 else super().predict_one(x)
"""


def write(home: Home, label: str, late: bool = False, **sections: Any) -> None:
    """Write 60 records, three of them with a label of their own, which come late or at once."""
    labels = [label if number in (20, 30, 40) else f"{number % 7}.5" for number in range(60)]
    key = [f'"id": "k{number}", ' if late else "" for number in range(60)]
    rows = [f'{{{key[n]}"a": {n}}}\n' if late else f'{{"a": {n}, "y": {y}}}\n' for n, y in enumerate(labels)]
    (home.folder / "records.jsonl").write_text("".join(rows))
    (home.folder / "labels.jsonl").write_text("".join(f'{{{key[n]}"y": {y}}}\n' for n, y in enumerate(labels)))
    source = {"kind": "jsonl", "path": "records.jsonl", "target": "y", "target_type": "float"}
    if late:
        sections["labels"] = {"source": {**source, "path": "labels.jsonl"}, "key": "id"}
    home.configure(source=source, checkpoint={"directory": "out/state", "every_records": 10}, **sections)


def test_a_model_that_predicts_infinity_is_counted(home: Home, launcher: Launcher) -> None:
    (home.folder / "overflowing.py").write_text(MODEL)
    write(home, "1.5", model=["overflowing.Overflowing"], imports=["overflowing"])
    done = launcher.call(home, "run", "config.yaml")
    assert done.returncode == 0, done.stderr
    assert "1 predictions were not finite" in done.stderr
    lines = home.lines("out/predictions.jsonl")
    assert [number for number, line in enumerate(lines) if line["prediction"] is None] == [7]
    assert home.header()["source"]["account"]["learned"] == 60
