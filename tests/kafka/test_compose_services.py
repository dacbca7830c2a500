"""The services of configs/compose.yaml together, without containers: a stream, the daemon, Prometheus and its rules."""

from __future__ import annotations

import http.client
import json
import signal
import subprocess
import sys
import time
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.deploy.programs import CONFIGS, ROOT, needed_program
from tests.kafka.cluster import Cluster
from tests.kafka.producing import consume
from tests.ports import reserved_port

_SECONDS = 120
SERVICES: dict[str, Any] = yaml.safe_load((CONFIGS / "compose.yaml").read_text())["services"]


@contextmanager
def running(*command: str, folder: Path, log: Path) -> Iterator[None]:
    """Run a service until the test is done with it, then stop it as an engine does: it must end by itself."""
    with log.open("wb") as said:
        process = subprocess.Popen(command, cwd=folder, stdout=said, stderr=said)
        try:
            yield
            assert process.poll() is None, log.read_text()
            process.send_signal(signal.SIGTERM)
            assert process.wait(_SECONDS) == 0, log.read_text()
        finally:
            process.kill()
            process.wait()


def prometheus_configuration(folder: Path, port: int) -> Path:
    """The configuration of Prometheus as it is, but for the address of the daemon, its haste, and where rules are."""
    for name in ("rules.yaml", "alerts.yaml"):
        (folder / name).write_bytes((CONFIGS / "mixin" / name).read_bytes())
    text = (CONFIGS / "compose/prometheus.yml").read_text()
    for there, here in (
        ("daemon:9108", f"127.0.0.1:{port}"),
        ("/etc/prometheus/rules/", f"{folder}/"),
        ("scrape_interval: 5s", "scrape_interval: 250ms"),
        ("evaluation_interval: 15s", "evaluation_interval: 500ms"),
    ):
        assert there in text
        text = text.replace(there, here)
    file = folder / "prometheus.yml"
    file.write_text(text)
    return file


def answered(address: str, path: str) -> Any:
    """What the API of Prometheus gives; None while it starts."""
    try:
        with urllib.request.urlopen(f"http://{address}/api/v1/{path}", timeout=30) as given:
            return json.load(given)["data"]
    except OSError:
        return None


def value_of(address: str, expression: str) -> float:
    """The value of an expression that gives one series; 0 where it gives none yet."""
    data = answered(address, f"query?{urllib.parse.urlencode({'query': expression})}")
    return float(data["result"][0]["value"][1]) if data and data["result"] else 0.0


def status_for(port: int, host: str) -> int:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    connection.request("GET", "/metrics", headers={"Host": host})
    status = connection.getresponse().status
    connection.close()
    return status


@pytest.mark.long
def test_records_flow_from_the_stream_to_prometheus(broker: Cluster, topic: Callable[..., str], tmp_path: Path) -> None:
    name, predictions, letters = topic(), topic(), topic()
    port, address = reserved_port(), f"127.0.0.1:{reserved_port()}"
    settings = {
        "source.topic": name,
        "predictions.topic": predictions,
        "predictions.transactional_id": name,
        "dead_letters.topic": letters,
        **{f"{section}.bootstrap_servers": broker.bootstrap for section in ("source", "predictions", "dead_letters")},
        "metrics.host": "127.0.0.1",
        "metrics.port": port,
    }
    daemon = [sys.executable, "-m", "streamkernel", "run", str(CONFIGS / "compose/streamkernel.yaml")]
    daemon += [part for key, value in settings.items() for part in ("--set", f"{key}={value}")]
    here = {"bananas": name, "kafka:9092": broker.bootstrap}
    stream = [*SERVICES["stream"]["entrypoint"], *(here.get(part, part) for part in SERVICES["stream"]["command"])]
    stream[0] = sys.executable
    program = needed_program("prometheus", "prometheus")
    config = prometheus_configuration(tmp_path, port)
    prometheus = [program, f"--config.file={config}", f"--storage.tsdb.path={tmp_path}/data"]
    with ExitStack() as stack:
        stack.enter_context(running(*daemon, folder=tmp_path, log=tmp_path / "daemon.log"))
        stack.enter_context(running(*stream, folder=ROOT, log=tmp_path / "stream.log"))
        listen = f"--web.listen-address={address}"
        stack.enter_context(running(*prometheus, listen, folder=tmp_path, log=tmp_path / "prometheus.log"))
        deadline = time.monotonic() + _SECONDS
        while value_of(address, "streamkernel_records_learned_total") < 500:
            assert time.monotonic() < deadline, (tmp_path / "daemon.log").read_text()
            time.sleep(0.1)
        assert value_of(address, 'up{job="streamkernel"}') == 1
        rules: list[Any] = []
        while not rules or any(rule["health"] == "unknown" for rule in rules):  # not evaluated yet
            rules = [rule for group in answered(address, "rules")["groups"] for rule in group["rules"]]
            assert time.monotonic() < deadline, rules
            time.sleep(0.1)
        assert {rule["health"] for rule in rules} == {"ok"}
        assert status_for(port, "daemon:9108") == 200
        assert status_for(port, "elsewhere:9108") == 421
    assert len(consume(broker.bootstrap, predictions)[0]) >= 500
    assert not any(consume(broker.bootstrap, letters).values())
