"""How a stream is cut into chunks, or that it is cut at all, shows in nothing the daemon leaves behind."""

from __future__ import annotations

import gc
import json
import random
from pathlib import Path
from typing import Any

import pytest
from river.base import Classifier

from streamkernel import AdaptiveKernelClassifier, KernelClassifier
from streamkernel.daemon.runtime import run
from streamkernel.daemon.stream import batch_size
from streamkernel.daemon.stream.garbage import rare_collections
from streamkernel.daemon.stream.river_learner import RiverLearner, learner_for
from streamkernel.daemon.wiring.plan import prepare
from tests.daemon.conftest import Home, write_stream

GROWING: dict[str, Any] = {"streamkernel.KernelClassifier": {"seed": 1, "max_features": 128}}
MODELS = {
    "growing": GROWING,
    # A third class now and then is refused by the model itself, in the middle of a chunk.
    "two classes": {"streamkernel.KernelClassifier": {"seed": 1, "loss": {"streamkernel.losses.Log": {}}}},
    "adaptive": {"streamkernel.AdaptiveKernelClassifier": {"seed": 1, "n_features": 32}},
}


def write_json_stream(path: Path, records: int) -> None:
    """Write as JSON lines what `write_stream` writes as CSV, with faults only JSON can have."""
    draw = random.Random(5)
    lines = []
    for _ in range(records):
        a, b = draw.gauss(0, 1), draw.gauss(0, 1)
        x: dict[str, Any] = {"a": a, "b": b, "colour": draw.choice(["red", "green", None]), "y": a * a + b * b < 1.2}
        kind = draw.random()
        if kind < 0.03:
            x["y"] = None
        elif kind < 0.06:
            x["a"] = float("nan")
        elif kind < 0.08:
            x["b"] = draw.choice([[1], float("inf"), "w" * 300])
        elif kind < 0.1:
            x["y"] = "perhaps"
        line = json.dumps(x)
        lines.append(draw.choice(["", "{", "[1]", "null"]) if kind > 0.98 else line)
    path.write_text("\n".join(lines) + "\n")


@pytest.mark.parametrize(("kind", "model"), [("csv", "growing"), ("jsonl", "two classes"), ("jsonl", "adaptive")])
def test_the_length_of_the_chunks_changes_no_byte(
    home: Home, monkeypatch: pytest.MonkeyPatch, kind: str, model: str
) -> None:
    path = home.folder / f"stream.{kind}"
    (write_stream if kind == "csv" else write_json_stream)(path, 400)
    home.configure(source={"kind": kind, "path": str(path), "target": "y"}, model=[MODELS[model]])
    results, metrics = [], []
    for most in (1, 7, 512):
        monkeypatch.setattr(batch_size, "MOST_RECORDS", most)
        view = run(prepare(home.config), fresh=True)
        results.append((*home.result(), home.header()["recent_dead"]))
        metrics.append({**view.overall, **view.rolling, "loss": view.loss})
    assert results[1:] == results[:1] * 2
    assert metrics[1] == pytest.approx(metrics[0], rel=1e-12)
    assert metrics[2] == pytest.approx(metrics[0], rel=1e-12)
    assert home.header()["account"]["dead"] > 10
    assert "refused" in {letter["reason"] for letter in home.lines("out/dead.jsonl")} or model != "two classes"


@pytest.mark.parametrize("model", [KernelClassifier(seed=1), AdaptiveKernelClassifier(n_features=32, seed=1)])
def test_whole_chunks_leave_the_state_that_rivers_loop_leaves(model: Classifier) -> None:
    draw = random.Random(2)
    xs = [{"a": draw.gauss(0, 1), "b": draw.gauss(0, 1)} for _ in range(300)]
    ys = [None if draw.random() < 0.05 else x["a"] * x["b"] > 0 for x in xs]
    chunks, loop = learner_for(model.clone()), RiverLearner(model.clone())
    ours = chunks.advance(xs, ys).result
    rivers = loop.advance(xs, ys).result
    assert chunks.model.state_digest() == loop.model.state_digest()  # type: ignore[union-attr]
    assert ours.predictions == rivers.predictions
    assert ours.probabilities is not None
    assert rivers.probabilities is not None
    for one, other in zip(ours.probabilities, rivers.probabilities, strict=True):
        assert one == pytest.approx(other, rel=1e-4, abs=1e-6)


@pytest.mark.parametrize("before", [(0, 10, 10), (60_000, 5, 5)])
def test_a_garbage_collector_somebody_set_up_is_left_alone(before: tuple[int, int, int]) -> None:
    now = gc.get_threshold()
    try:
        gc.set_threshold(*before)
        with rare_collections():
            assert gc.get_threshold() == before
        assert gc.get_threshold() == before
    finally:
        gc.set_threshold(*now)


def test_a_run_leaves_the_garbage_collector_as_it_was(here: Home) -> None:
    before = gc.get_threshold()
    run(prepare(here.config))
    assert gc.get_threshold() == before
