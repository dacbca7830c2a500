"""What clients of the service cannot do: hold it up, fill it, come without a password, or change the model."""

from __future__ import annotations

import base64
import json
import random
import threading
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from streamkernel import AdaptiveKernelClassifier, AdaptiveKernelRegressor
from streamkernel.daemon.assembly.plan import prepare
from streamkernel.daemon.runtime import run
from streamkernel.daemon.serve.predictor import Predictor
from tests.daemon.conftest import Home
from tests.daemon.raw_http import connect, exchange
from tests.daemon.service import LATE, serving

X = {"a": 0.25, "b": -1.0, "color": "red"}
HEAD = b"POST /predict HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"


def whole(body: bytes) -> bytes:
    return HEAD + b"Content-Length: %d\r\n\r\n" % len(body) + body


def test_numbers_that_are_none_are_told(trained: Home) -> None:
    """As the run reads them: what is absent is no input, what no float can hold is at fault."""
    with serving(trained, serve={"port": 0}) as (client, _):
        nothing = client.ask("/predict", {"b": -1.0})
        for text in (b"NaN", b"null"):
            assert client.ask("/predict", b'{"a": %s, "b": -1.0}' % text) == nothing
        for text in (b"Infinity", b"-Infinity", b"1e999"):
            code, answer = client.ask("/predict", b'{"a": %s}' % text)
            assert (code, answer["error"]["reason"]) == (422, "infinite")


def test_a_client_that_goes_away_harms_nobody(trained: Home) -> None:
    with serving(trained, **LATE) as (client, started):
        for number in range(20):
            with connect(started.port) as one:
                one.sendall(whole(json.dumps([{**X, "id": f"{number}/{place}"} for place in range(100)]).encode()))
        assert client.ask("/predict", {**X, "id": "last"})[0] == 202


def test_a_large_request_lets_small_ones_pass(trained: Home) -> None:
    """They are predicted in turns; each is answered with its own records."""
    rows = [{"a": place / 100, "b": 0.5} for place in range(900)]
    with serving(trained, serve={"port": 0}) as (client, started):
        alone = [client.ask("/predict", row)[1] for row in rows[::100]]
        found: list[bytes] = []
        body = whole(json.dumps(rows).encode()).replace(b"Host", b"Connection: close\r\nHost", 1)
        threads = [threading.Thread(target=lambda: found.append(exchange(started.port, body))) for _ in range(4)]
        for one in threads:
            one.start()
        while any(one.is_alive() for one in threads):
            assert client.ask("/predict", rows[100])[1] == alone[1]
        for answer in found:
            assert json.loads(answer.partition(b"\r\n\r\n")[2])[::100] == alone
        assert len(found) == 4


def request(url: str, body: bytes, password: str) -> urllib.request.Request:
    token = base64.b64encode(password.encode()).decode()
    headers = {"Content-Type": "application/json", "Authorization": f"Basic {token}"}
    return urllib.request.Request(f"{url}/predict", body, headers)


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
