"""An operator: the daemon as a service, looked at, stopped, broken, upgraded."""

from __future__ import annotations

import json
import re
import signal
import time
from typing import Any

import pytest

from tests.daemon.conftest import Running, write_stream
from tests.daemon.endpoint import get, values_of
from tests.journeys.conftest import Person
from tests.journeys.pages import command

COMMANDS = "reference/command-line.md"
RECORDS = 300
SECRET = "correct-horse-battery"
SERVICE: dict[str, Any] = {
    "source": {
        "kind": "csv",
        "path": "stream.csv",
        "target": "y",
        "target_type": "bool",
        "follow": True,
        "inputs": {"exclude": ["color"]},
    },
    "model": ["river.preprocessing.StandardScaler", {"river.linear_model.LogisticRegression": {"l2": 0.001}}],
    "predictions": {"kind": "jsonl", "path": "out/predictions.jsonl"},
    "dead_letters": {"kind": "jsonl", "path": "out/dead-letters.jsonl"},
    "checkpoint": {"directory": "out/state", "every_records": 100},
    "metrics": {"port": 0, "basic_auth": {"username": "ops", "password": "${PASSWORD}"}},
    "log": {"format": "json"},
}


@pytest.fixture
def service(person: Person) -> Person:
    """A stream that grows, and a configuration for it."""
    write_stream(person.folder / "stream.csv", RECORDS, bad=False)
    person.writes("service.yaml", SERVICE)
    return person


def started(person: Person, *words: str) -> tuple[Running, str]:
    daemon = person.starts("run", "service.yaml", *words, PASSWORD=SECRET)
    url = daemon.wait_for(r"serving metrics at (http://127\.0\.0\.1:\d+)/metrics")[1]
    return daemon, url


def wait_for_records(url: str, n: int) -> dict[str, float]:
    for _ in range(3000):
        values = values_of(get(f"{url}/metrics", f"ops:{SECRET}")[1])
        if values["records_consumed_total"] >= n:
            return values
        time.sleep(0.02)
    raise AssertionError(f"{n} records never came: {values}")


def test_a_service_through_a_day(service: Person) -> None:
    daemon, url = started(service)
    values = wait_for_records(url, RECORDS)
    assert values["records_consumed_total"] == RECORDS
    assert (get(f"{url}/healthz")[0], get(f"{url}/readyz")[0], get(f"{url}/metrics")[0]) == (200, 200, 401)
    assert '<link rel="icon" href="data:' in get(url, f"ops:{SECRET}")[1]
    assert '"accuracy":' in get(f"{url}/api/status", f"ops:{SECRET}")[1]

    # A second one on the same directory is kept out, and names the first.
    second = service.types(["run", "service.yaml"], PASSWORD=SECRET)
    assert second.returncode == 1
    assert f"in use by another daemon (process {daemon.pid})" in second.stderr

    # More comes, some of it broken; the counts add up.
    with (service.folder / "stream.csv").open("a") as stream:
        stream.write("1,2,red,yes\nbroken\n1,2,red,no\n")
    values = wait_for_records(url, RECORDS + 3)
    assert values["records_dead_lettered_total{reason=csv_width}"] == 1
    daemon.signal(signal.SIGTERM)
    assert daemon.wait().returncode == 0

    log = [json.loads(line) for line in daemon.log.splitlines()]
    assert all({"time", "level", "message"} <= line.keys() for line in log), log[0]
    account = service.inspects("out/state")["source"]["account"]
    assert (account["consumed"], account["learned"], account["dead"]) == (RECORDS + 3, RECORDS + 2, 1)
    lines = service.lines("out/predictions.jsonl")
    assert len(lines) == len({line["position"]["offset"] for line in lines}) == RECORDS + 2
    for file in service.folder.rglob("*"):
        assert not file.is_file() or SECRET.encode() not in file.read_bytes(), file
    assert SECRET not in daemon.log + daemon.output


def test_an_upgrade_of_the_model(service: Person) -> None:
    ended = ["--set", "source.follow=false"]
    assert service.types(["run", "service.yaml", *ended], PASSWORD=SECRET).returncode == 0
    # Another model is refused with the difference; --fresh starts over with it.
    other = [*ended, "--set", "model[1].l2=0.5"]
    refused = service.types(["run", "service.yaml", *other], PASSWORD=SECRET)
    assert refused.returncode == 1
    assert "model[1].l2: checkpoint has 0.001, configuration says 0.5" in refused.stderr
    assert service.types(["run", "service.yaml", *other, "--fresh"], PASSWORD=SECRET).returncode == 0
    assert service.inspects("out/state")["source"]["account"]["learned"] == RECORDS
    # What was set aside is still there, beside the new.
    assert [one for one in service.folder.rglob("*") if ".old" in one.name]


def test_the_commands_that_print_something(service: Person) -> None:
    assert re.fullmatch(r"streamkernel \d+\.\d+\.\d+\n", service.types(["--version"]).stdout)
    assert "_streamkernel_completion" in service.types(command(COMMANDS, "completion bash")).stdout
    schema = json.loads(service.types(command(COMMANDS, "schema")).stdout)
    assert SERVICE.keys() <= schema["properties"].keys()
    for words in (["run", "nowhere.yaml"], ["inspect", "nowhere"], ["predict", "nowhere", "stream.csv"], ["rum"]):
        done = service.types(words)
        assert done.returncode in (1, 2)
        assert "Traceback" not in done.stderr
        assert words[-1] in done.stderr or "nowhere" in done.stderr
