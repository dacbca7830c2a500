"""The service and the run that learns are killed again and again: what was acknowledged is learnt exactly once."""

from __future__ import annotations

import random
import signal
import time
from contextlib import suppress
from http.client import HTTPException
from typing import Any

import pytest

from tests.daemon.conftest import Home, Launcher, Running
from tests.daemon.service import DIRECT, LATE, Client

ROUNDS = [3, pytest.param(20, marks=pytest.mark.long)]
PER_ROUND = 60
PLACES = ("journal-group", "journal-durable")


def started(home: Home, launcher: Launcher, **environment: str) -> tuple[Running, Client | None]:
    """Start the service; no client where it was killed before."""
    service = launcher.start(home, "serve", "config.yaml", **environment)
    for _ in range(6000):
        if "serving predictions at" in service.log:
            found = service.wait_for(r"serving predictions at http://127\.0\.0\.1:(\d+)")
            return service, Client(int(found[1]))
        time.sleep(0.01)
    raise AssertionError(service.log)


def send(client: Client, path: str, body: Any, **headers: str) -> bool:
    """Send until it is acknowledged; False where the service died."""
    with suppress(HTTPException, OSError):
        while True:
            status, _ = client.ask(path, body, **headers)
            if status == 202:
                return True
            assert status == 503
            time.sleep(0.05)
    return False


@pytest.mark.parametrize("rounds", ROUNDS)
@pytest.mark.parametrize("late", [False, True], ids=["labelled", "late labels"])
def test_kills_of_both(home: Home, launcher: Launcher, late: bool, rounds: int) -> None:
    draw = random.Random(13)
    checkpoint = {"directory": "out/state", "every_records": 20, "keep": 2}
    home.configure(**(LATE if late else DIRECT), checkpoint=checkpoint)
    todo: list[tuple[str, dict[str, Any], dict[str, str]]] = []
    for number in range(rounds * PER_ROUND):
        x = {"a": draw.gauss(0, 1), "b": float(number)}
        if late:
            todo += [("/predict", {**x, "id": number}, {}), ("/learn", {"id": number, "y": "yn"[number % 2]}, {})]
        else:
            todo.append(("/learn", {**x, "y": "yn"[number % 2]}, {"Idempotency_Key": f"k{number}"}))
    n_sent = 0
    for number in range(rounds):
        learning = launcher.start(home, "run", "config.yaml", STREAMKERNEL_CRASH=f"consumed:{draw.randint(20, 90)}")
        place = PLACES[number % 2]
        service, client = started(home, launcher, STREAMKERNEL_CRASH=f"{place}:{draw.randint(10, PER_ROUND)}")
        assert client is not None
        while n_sent < len(todo) and send(client, *todo[n_sent][:2], **todo[n_sent][2]):
            n_sent += 1
        client.close()
        for one in (service, learning):
            with suppress(ProcessLookupError):
                one.signal(signal.SIGKILL)
            assert one.wait().returncode == -signal.SIGKILL
    learning = launcher.start(home, "run", "config.yaml")
    service, client = started(home, launcher)
    assert client is not None
    for path, body, headers in todo[n_sent:]:
        assert send(client, path, body, **headers)
    client.close()
    service.signal(signal.SIGTERM)
    assert service.wait().returncode == 0
    wanted = rounds * PER_ROUND
    learning.wait_for("reading journal")
    for _ in range(3000):
        if len((home.folder / "out/predictions.jsonl").read_text().splitlines()) == wanted and (
            home.header()["account"]["learnt"] == wanted
        ):
            break
        time.sleep(0.02)
    learning.signal(signal.SIGTERM)
    assert learning.wait().returncode == 0
    account = home.header()["account"]
    assert (account["consumed"], account["predicted"], account["learnt"], account["dead"]) == (
        wanted,
        wanted,
        wanted,
        0,
    )
    offsets = [line["position"]["offset"] for line in home.lines("out/predictions.jsonl")]
    assert offsets == sorted(set(offsets))
    assert len(offsets) == wanted
