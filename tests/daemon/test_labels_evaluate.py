"""Delayed progressive validation: the figures of `river.evaluate.progressive_val_score(delay=...)`."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from river import datasets, evaluate, linear_model, metrics, preprocessing
from river.base import Estimator
from river.optim.losses import Huber

from streamkernel import AdaptiveKernelClassifier, AdaptiveKernelRegressor, KernelClassifier, KernelRegressor
from streamkernel.daemon.assembly.plan import prepare
from streamkernel.daemon.base.errors import DaemonError
from streamkernel.daemon.base.events import Prediction
from streamkernel.daemon.base.moments import Moments
from streamkernel.daemon.evaluate import evaluate as evaluate_plan
from streamkernel.daemon.monitoring.evaluation import Evaluation
from streamkernel.daemon.stream.record_batch import RecordBatch
from streamkernel.daemon.stream.river_learner import learner_for
from streamkernel.daemon.stream.stop import StopSignals
from streamkernel.losses import Log, SquaredHinge
from tests.daemon.conftest import Home

PHISHING = list(datasets.Phishing().take(600))
SCALED = ["river.preprocessing.StandardScaler", "river.linear_model.LogisticRegression"]
CLASSIFIERS: dict[str, tuple[Estimator, list[Any]]] = {
    "River's": (preprocessing.StandardScaler() | linear_model.LogisticRegression(), SCALED),
    "growing": (KernelClassifier(seed=1), [{"streamkernel.KernelClassifier": {"seed": 1}}]),
    "adaptive": (
        AdaptiveKernelClassifier(n_features=16, seed=1),
        [{"streamkernel.AdaptiveKernelClassifier": {"n_features": 16, "seed": 1}}],
    ),
}


def write(path: Path, stream: Iterable[tuple[dict[str, Any], Any]], delay: int) -> dict[str, Any]:
    """Write a stream as records and labels: the answer comes before the question `delay` later, as River has it."""
    with (path / "records.jsonl").open("w") as records, (path / "labels.jsonl").open("w") as labels:
        labels.write("\n" * (delay - 1))
        for number, (x, y) in enumerate(stream):
            records.write(json.dumps({"id": number, **x}) + "\n")
            labels.write(json.dumps({"id": number, "y": y}) + "\n")
    target_type = "bool" if isinstance(y, bool) else "float"
    return {
        "source": {"kind": "jsonl", "path": str(path / "records.jsonl")},
        "labels": {
            "source": {"kind": "jsonl", "path": str(path / "labels.jsonl"), "target": "y", "target_type": target_type},
            "key": "id",
        },
    }


def evaluated(home: Home, stream: Iterable[tuple[dict[str, Any], Any]], delay: int, model: list[Any]) -> Evaluation:
    plan = prepare(home.configure(**write(home.folder, stream, delay), model=model))
    found = evaluate_plan(plan, StopSignals())
    assert found.view.labels["pending"] == found.view.labels["early"] == found.view.labels["expired"] == 0
    found.model = plan.model  # type: ignore[attr-defined]
    return found


@pytest.mark.parametrize(("name", "delay"), [("River's", 1), ("growing", 3), ("adaptive", 100)])
def test_a_classifier_has_rivers_figures(home: Home, name: str, delay: int) -> None:
    found = evaluated(home, PHISHING, delay, CLASSIFIERS[name][1])
    model = CLASSIFIERS[name][0].clone()
    both = metrics.Accuracy() + metrics.LogLoss()
    scores = evaluate.progressive_val_score(PHISHING, model, both, delay=delay).get()
    assert [found.view.overall[ours] for ours in ("accuracy", "log_loss")] == pytest.approx(scores, rel=1e-5)
    if hasattr(model, "state_digest"):
        assert found.model.state_digest() == model.state_digest()  # type: ignore[attr-defined]


@pytest.mark.parametrize(("kind", "delay"), [(KernelRegressor, 30), (AdaptiveKernelRegressor, 1)])
def test_a_regressor_has_rivers_figures(home: Home, kind: type[Any], delay: int) -> None:
    stream = list(datasets.TrumpApproval().take(200))
    found = evaluated(home, stream, delay, [{f"streamkernel.{kind.__name__}": {"seed": 1}}])
    model = kind(seed=1)
    score = evaluate.progressive_val_score(stream, model, metrics.MAE(), delay=delay)
    assert found.view.overall["mae"] == pytest.approx(score.get(), rel=1e-9)
    assert found.model.state_digest() == model.state_digest()  # type: ignore[attr-defined]


def test_labels_after_the_last_record_move_the_end_of_the_curve(home: Home) -> None:
    found = evaluated(home, PHISHING, 200, SCALED)
    assert found.records == sorted(set(found.records))
    assert found.records[-1] == 600
    assert found.loss[-1] == found.view.loss
    assert found.to_json()["labels"]["matched"] == 600


@pytest.mark.parametrize(
    "model",
    [
        KernelClassifier(seed=1),
        KernelClassifier(loss=Log(), seed=1),
        KernelClassifier(loss=SquaredHinge(), seed=1),
        AdaptiveKernelClassifier(n_features=16, seed=1),
        preprocessing.StandardScaler() | linear_model.LogisticRegression(),
    ],
    ids=["softmax", "log", "hinge", "adaptive", "River's"],
)
def test_the_loss_of_a_label_at_once_is_the_same_when_it_comes_late(model: Any) -> None:
    xs, ys = (list(part) for part in zip(*PHISHING, strict=True))
    learner = learner_for(model)
    result = learner.advance(RecordBatch(inputs=xs, targets=ys)).result
    assert result.probabilities is not None
    for y, label, p, loss in zip(ys, result.predictions, result.probabilities, result.losses, strict=True):
        if y in p:
            assert learner.loss(y, Prediction(label, p), 1.0) == pytest.approx(loss, rel=1e-4, abs=1e-6)


@pytest.mark.parametrize(
    "model", [KernelRegressor(seed=1), KernelRegressor(loss=Huber(), seed=1), AdaptiveKernelRegressor(seed=1)]
)
def test_the_loss_of_a_number_has_the_same_unit(model: Any) -> None:
    xs, ys = (list(part) for part in zip(*datasets.TrumpApproval().take(500), strict=True))
    learner = learner_for(model)
    learned = learner.advance(RecordBatch(inputs=xs, targets=ys))
    moments, late = Moments(), []
    for y, predicted in zip(ys, learned.result.predictions, strict=True):
        moments = moments.after(y)
        late.append(learner.loss(y, Prediction(predicted), moments.deviation))
    # At once, the prediction has the unit before its target and the target the one after it.
    assert sum(late[100:]) == pytest.approx(sum(learned.result.losses[100:]), rel=0.05)


def test_a_label_nobody_knew_of_has_no_own_loss() -> None:
    learner = learner_for(KernelClassifier(seed=1))
    learner.advance(RecordBatch(inputs=[{"a": 1.0}, {"a": 2.0}], targets=["p", "q"]))
    assert math.isnan(learner.loss("q", Prediction("p", {"p": 1.0}), 1.0))
    assert math.isnan(learner.loss("q", Prediction(None), 1.0))
    assert learner.loss("q", Prediction("p", {"p": 0.75, "q": 0.25}), 1.0) == pytest.approx(math.log(4))


def test_labels_without_an_end_are_refused(home: Home) -> None:
    made = write(home.folder, datasets.Phishing().take(10), 1)
    made["labels"]["source"]["follow"] = True
    with pytest.raises(
        DaemonError, match=r"needs a source that ends, this one is followed: add --set labels\.source\.follow=false"
    ):
        evaluate_plan(prepare(home.configure(**made)), StopSignals())
