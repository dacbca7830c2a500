"""What the daemon shows while it reads a topic: the lag, at any moment, and its panel."""

from __future__ import annotations

import json
import random
import signal
import time
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.daemon.conftest import Home, Launcher, program
from tests.daemon.test_prometheus import DASHBOARD, OF_TOPICS, answer, prometheus
from tests.kafka.cluster import Cluster
from tests.kafka.producing import produce

Topics = Callable[..., str]
BACKLOG = 20_000


def rings(count: int) -> list[dict[str, Any]]:
    draw = random.Random(0)
    points = [(draw.gauss(0, 1), draw.gauss(0, 1)) for _ in range(count)]
    return [{"a": a, "b": b, "y": str(a * a + b * b < 1.2)} for a, b in points]


def configure(home: Home, broker: Cluster, name: str) -> None:
    home.configure(
        source={"kind": "kafka", "topic": name, "bootstrap_servers": broker.bootstrap, "target": "y"},
        # Slow enough to be seen on its way: its figures are published twice a second.
        model=[{"streamkernel.AdaptiveKernelClassifier": {"seed": 1}}],
        metrics={"port": 0},
    )


def scraped(url: str) -> tuple[float, float]:
    """How many records were consumed, and how many are still to come; NaN before that is known."""
    with urllib.request.urlopen(url, timeout=10) as given:
        lines = [line.rsplit(" ", 1) for line in given.read().decode().splitlines() if not line.startswith("#")]
    lags = [float(value) for name, value in lines if name.startswith("streamkernel_consumer_lag_records{")]
    return float(dict(lines)["streamkernel_records_consumed_total"]), sum(lags) if lags else float("nan")


def test_the_lag_is_right_at_any_moment(broker: Cluster, topic: Topics, home: Home, launcher: Launcher) -> None:
    name = topic(partitions=2)
    produce(broker.bootstrap, name, rings(BACKLOG), partition=lambda number: number % 2)
    configure(home, broker, name)
    daemon = launcher.start(home, "run", "config.yaml")
    url = daemon.wait_for(r"serving metrics at (http://\S+/metrics)")[1]
    seen: list[tuple[float, float]] = []
    deadline = time.monotonic() + 60
    while not seen or seen[-1][0] < BACKLOG:
        assert time.monotonic() < deadline
        consumed, lag = scraped(url)
        if lag == lag:
            seen.append((consumed, lag))
    assert {consumed + lag for consumed, lag in seen} == {BACKLOG}
    assert len({consumed for consumed, _ in seen}) > 2  # and it was on its way
    daemon.signal(signal.SIGTERM)
    assert daemon.wait().returncode == 0


def test_the_panels_of_topics_get_data(
    broker: Cluster, topic: Topics, home: Home, launcher: Launcher, tmp_path: Path
) -> None:
    program_of_prometheus = program("prometheus")  # before a daemon is started
    name = topic(partitions=2)
    produce(broker.bootstrap, name, rings(100))
    configure(home, broker, name)
    daemon = launcher.start(home, "run", "config.yaml")
    address = daemon.wait_for(r"serving metrics at http://(\S+)/metrics")[1]
    panels = {panel["title"]: panel for panel in json.loads(DASHBOARD.read_text())["panels"]}
    asked = [target["expr"] for title in OF_TOPICS for target in panels[title]["targets"]]
    with prometheus(program_of_prometheus, tmp_path, [address]) as url:
        deadline = time.monotonic() + 60
        while [answer(url, expression) for expression in asked] != [2] * len(asked):
            assert time.monotonic() < deadline, (tmp_path / "prometheus.log").read_text()
            time.sleep(0.1)
    daemon.signal(signal.SIGTERM)
    assert daemon.wait().returncode == 0
