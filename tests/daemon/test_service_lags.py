"""Predictions over HTTP by a model that knows the past of the target: by what it had learnt, and changing nothing."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from streamkernel import AdaptiveKernelClassifier, AdaptiveKernelRegressor
from streamkernel.daemon.runtime import run
from streamkernel.daemon.service.predictor import Predictor
from streamkernel.daemon.wiring.plan import prepare
from tests.daemon.conftest import Home
from tests.daemon.service import serving

SMALL: dict[str, Any] = {"n_features": 16, "memory": 100, "seed": 1}
MODELS: list[tuple[Any, int]] = [(AdaptiveKernelRegressor, 3), (AdaptiveKernelClassifier, 1)]
#: All inputs numbers, one missing, one that the model does not know.
ROWS = [{"a": 0.25, "b": -1.0}, {"a": 2.0}, {"a": 0.5, "b": 1.0, "c": 3.0}]


def series(numbers: bool) -> tuple[list[dict[str, float]], list[Any]]:
    """Records whose target goes on from where it was."""
    draw = random.Random(3)
    y, xs, ys = 0.0, [], []
    for _ in range(300):
        xs.append({"a": draw.gauss(0, 1), "b": draw.gauss(0, 1)})
        y = 0.95 * y + xs[-1]["a"] + draw.gauss(0, 0.1)
        ys.append(y if numbers else str(int(y > 0) + int(y > 2)))
    return xs, ys


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@pytest.mark.parametrize(("kind", "lags"), MODELS)
def test_what_is_served_is_what_the_model_says_and_changes_nothing(
    home: Home, monkeypatch: pytest.MonkeyPatch, kind: Any, lags: int
) -> None:
    numbers = kind is AdaptiveKernelRegressor
    xs, ys = series(numbers)
    lines = (json.dumps({**x, "y": y}) + "\n" for x, y in zip(xs, ys, strict=True))
    (home.folder / "stream.jsonl").write_text("".join(lines))
    source = {"kind": "jsonl", "path": "stream.jsonl", "target": "y", "target_type": "float" if numbers else "str"}
    configured = {"source": source, "model": [{f"streamkernel.{kind.__name__}": {"lags": lags, **SMALL}}]}
    run(prepare(home.configure(**configured)))
    model, without = kind(lags=lags, **SMALL), kind(**SMALL)
    for one in (model, without):
        one.advance(xs, ys)
    expected = [model.predict_one(x) for x in ROWS]
    served = served_models(monkeypatch)
    kept = contents(home.folder / "out/state")
    with serving(home, **configured, serve={"port": 0}) as (client, _):
        first = client.ask("/predict", ROWS)
        assert [answer["prediction"] for answer in first[1]] == expected
        if numbers:
            assert expected != [without.predict_one(x) for x in ROWS]
            deviations = [model.predict_one(x, with_dist=True).sigma for x in ROWS]
            assert [answer["std"] for answer in first[1]] == deviations
        else:
            probabilities = [model.predict_proba_one(x) for x in ROWS]
            assert [answer["probabilities"] for answer in first[1]] == probabilities
            assert probabilities != [without.predict_proba_one(x) for x in ROWS]
        assert client.ask("/predict", ROWS[::-1]) == (200, first[1][::-1])
        assert [client.ask("/predict", x)[1] for x in ROWS] == first[1]
        # A record that brings its lags, as one that waits for its label has them.
        brought = {"streamkernel.lag.1": 5.0 if numbers else "2", **ROWS[0]}
        assert client.ask("/predict", brought)[1]["prediction"] == model.predict_one(brought)
        assert client.ask("/predict", ROWS) == first
        assert served() == model.state_digest()
    assert contents(home.folder / "out/state") == kept


def served_models(monkeypatch: pytest.MonkeyPatch) -> Callable[[], str]:
    """Ask for the digest of the model that a service predicts with."""
    predictors: list[Any] = []
    started = Predictor.start

    def start(self: Predictor) -> None:
        predictors.append(self)
        started(self)

    monkeypatch.setattr(Predictor, "start", start)
    return lambda: str(predictors[-1]._model.trained.model.state_digest())
