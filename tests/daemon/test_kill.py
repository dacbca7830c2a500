"""Whatever kills the daemon or its service, wherever: it ends as if nothing had happened. See `tests/kills`."""

from __future__ import annotations

import random
import shutil
import signal
import time
from collections.abc import Callable
from contextlib import suppress
from http.client import HTTPException
from pathlib import Path
from typing import Any

import pytest

from streamkernel.daemon.assembly.plan import prepare
from streamkernel.daemon.checkpoints.file import read
from streamkernel.daemon.checkpoints.payload import load_model
from tests.daemon.configurations import OWN, predicting
from tests.daemon.conftest import Home, Launcher, Running, write_stream
from tests.daemon.service import DIRECT, LATE, Client
from tests.kills.simulated import killed, runs


@pytest.mark.parametrize("model", ["KernelClassifier", "AdaptiveKernelClassifier"])
def test_a_seed_that_was_drawn_survives(homes: Callable[[str], Home], tmp_path: Path, model: str) -> None:
    home = homes("one")
    write_stream(home.folder / "stream.csv", 600)
    home.configure(model=[f"streamkernel.{model}"], checkpoint={"directory": "out/state", "every_records": 200})
    killed(home, "consumed:1")
    assert home.header()["source"]["account"]["consumed"] == 0
    twin = Home(tmp_path / "twin")
    shutil.copytree(home.folder, twin.folder)
    assert runs(home) == 0
    for count in (10, 250, 144):
        killed(twin, f"consumed:{count}")
    assert runs(twin) == 0
    assert twin.result() == home.result()


@pytest.mark.long
def test_kills_from_outside_at_any_moment_change_nothing(homes: Callable[[str], Home]) -> None:
    """The same with fresh interpreters and a SIGKILL that no point of the program chose."""
    undisturbed, home = homes("undisturbed"), homes("killed")
    for each in (undisturbed, home):
        write_stream(each.folder / "stream.csv", 20_000)
        each.configure()
    draw = random.Random(7)
    state = home.folder / "out/state"
    for _ in range(30):
        process = home.start("run", "config.yaml")
        before = set(state.glob("*.skc"))
        while process.poll() is None and set(state.glob("*.skc")) == before:
            time.sleep(0.001)
        time.sleep(draw.random() * 0.05)
        process.kill()
        process.communicate()
    assert home.call("run", "config.yaml").returncode == undisturbed.call("run", "config.yaml").returncode == 0
    assert home.result() == undisturbed.result()


def reached(home: Home) -> list[int]:
    """How far each checkpoint reaches, the oldest first."""
    return [
        read(path).header["source"]["account"]["consumed"]
        for path in sorted((home.folder / "out/state").glob("checkpoint-*.skc"))
    ]


def test_starts_that_die_leave_the_older_checkpoints(home: Home) -> None:
    write_stream(home.folder / "stream.csv", 600)
    home.configure(checkpoint={"directory": "out/state", "every_records": 100, "keep": 3})
    assert runs(home, "run", "config.yaml", "--max-records", "240") == 0
    assert reached(home) == [100, 200, 240]
    lines, copy = home.folder / "out/predictions.jsonl", home.folder / "copy"
    for _ in range(4):
        # Restored from a backup: a file made at another time has another mark, which a checkpoint is written for.
        before = home.header()["outputs"]["predictions"]["mark"]
        shutil.copy(lines, copy)
        copy.replace(lines)
        killed(home, "consumed:1")
        assert home.header()["outputs"]["predictions"]["mark"] != before
        assert reached(home) == [100, 200, 240]
    assert runs(home) == 0
    assert reached(home) == [400, 500, 600]
    assert len(home.lines("out/predictions.jsonl")) == home.header()["source"]["account"]["predicted"]


RECORDS = 700


def learning(home: Home, keep: int) -> None:
    write_stream(home.folder / "stream.csv", RECORDS)
    write_stream(home.folder / "other.csv", RECORDS, seed=1)
    home.configure(checkpoint={"directory": "out/state", "every_records": 100, "keep": keep})


def test_each_line_is_what_the_checkpoint_it_names_says(home: Home) -> None:
    learning(home, keep=100)
    home.config.rename(home.folder / "learn.yaml")
    source = {"kind": "csv", "path": "other.csv", "target": "y"}
    home.configure(**predicting(checkpoint=OWN, reload=0.001, source=source))
    for where in ("consumed:150", "mid-batch:5", "consumed:250"):
        assert runs(home, "run", "learn.yaml", "--max-records", "200") == 0
        killed(home, where)
    assert runs(home) == 0
    account, lines = home.header("own/state")["source"]["account"], home.lines("own/predictions.jsonl")
    offsets = [line["position"]["offset"] for line in lines]
    assert offsets == sorted(set(offsets))
    assert (account["consumed"], account["predicted"], account["learned"]) == (RECORDS, len(lines), 0)
    assert len(home.lines("own/dead.jsonl")) == account["dead"]
    rows = (home.folder / "other.csv").read_text()
    models: dict[int, Any] = {}
    for line in lines:
        number = line["checkpoint"]
        if number not in models:
            checkpoint = read(home.folder / f"out/state/checkpoint-{number:012d}.skc")
            models[number] = load_model(checkpoint.payload, prepare(home.folder / "learn.yaml").model)
        values = rows[line["position"]["offset"] :].partition("\n")[0].split(",")
        x = {
            name: float(value) if name in "ab" else value
            for name, value in zip(("a", "b", "color"), values, strict=False)
            if value
        }
        assert {str(label): one for label, one in models[number].predict_proba_one(x).items()} == line["probabilities"]
    assert len(models) > 1


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
@pytest.mark.parametrize("late", [False, True], ids=["labeled", "late labels"])
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
            home.header()["source"]["account"]["learned"] == wanted
        ):
            break
        time.sleep(0.02)
    learning.signal(signal.SIGTERM)
    assert learning.wait().returncode == 0
    account = home.header()["source"]["account"]
    assert (account["consumed"], account["predicted"], account["learned"], account["dead"]) == (
        wanted,
        wanted,
        wanted,
        0,
    )
    offsets = [line["position"]["offset"] for line in home.lines("out/predictions.jsonl")]
    assert offsets == sorted(set(offsets))
    assert len(offsets) == wanted
