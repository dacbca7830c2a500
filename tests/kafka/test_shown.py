"""What the daemon shows while it reads a topic: the lag, at any moment, and what boards and alerts make of it."""

from __future__ import annotations

import signal
import time
import urllib.request
from collections.abc import Callable
from pathlib import Path

import orjson
import pytest
import yaml
from kafka import KafkaProducer

from tests.daemon.conftest import Home, Launcher, program
from tests.kafka.cluster import Cluster
from tests.kafka.learning import rings, section
from tests.kafka.members import Group
from tests.kafka.producing import produce
from tests.mixin.boards import DAEMON, asked_by_panel
from tests.mixin.conftest import MIXIN
from tests.mixin.hurried import hurried_rules, wait_until_clear, wait_until_fired
from tests.mixin.scraping import ALERTS_OF_TOPICS, PANELS_OF_TOPICS, answer, prometheus, without_bounds

Topics = Callable[..., str]
BACKLOG = 20_000
SERVING = r"serving metrics at http://(\S+)/metrics"
LAG = "instance:streamkernel_consumer_lag_records:sum"
SERIES = {
    "Lag by topic and partition": 4,
    "Lag of each instance": 2,
    "Partitions of each member": 1,
    "StreamkernelSourceStalled": 3,  # for the one instance, and for each partition of the member
    "StreamkernelLagGrowing": 2,
    LAG: 2,
}


def configure(home: Home, broker: Cluster, name: str) -> None:
    home.configure(
        source=section(broker.bootstrap, name, target="y"),
        # Slow enough to be seen on its way: its figures are published twice a second.
        model=[{"streamkernel.AdaptiveKernelClassifier": {"seed": 1}}],
        metrics={"port": 0},
    )


def asked_of_topics() -> dict[str, str]:
    """Return what the panels and the alerts ask for that only topics have."""
    panels = asked_by_panel(DAEMON)
    groups = yaml.safe_load((MIXIN / "alerts.yaml").read_text())["groups"]
    alerts = {rule["alert"]: rule["expr"] for group in groups for rule in group["rules"]}
    shown = {title: asked for title in PANELS_OF_TOPICS for (asked,) in [panels[title]]}
    return {**shown, **{alert: without_bounds(alerts[alert]) for alert in ALERTS_OF_TOPICS}, LAG: LAG}


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


def test_the_panels_and_alerts_of_topics_get_data(
    broker: Cluster, topic: Topics, home: Home, launcher: Launcher, tmp_path: Path
) -> None:
    """Of a daemon that reads two partitions alone, and of a member of a group that has two."""
    program_of_prometheus = program("prometheus")  # before a daemon is started
    name, of_group = topic(partitions=2), topic(partitions=2)
    for one in (name, of_group):
        produce(broker.bootstrap, one, rings(100), partition=lambda number: number % 2)
    configure(home, broker, name)
    daemon = launcher.start(home, "run", "config.yaml")
    addresses = [daemon.wait_for(SERVING)[1]]
    folder = tmp_path / "group"
    folder.mkdir()
    group = Group(folder, broker, of_group, 2)
    try:
        addresses.append(group.start().wait_for(SERVING))
        given = asked_of_topics()
        with prometheus(program_of_prometheus, tmp_path, addresses) as url:
            deadline = time.monotonic() + 90
            while (counts := {title: answer(url, asked) for title, asked in given.items()}) != SERIES:
                assert time.monotonic() < deadline, (counts, (tmp_path / "prometheus.log").read_text())
                time.sleep(0.1)
    finally:
        group.close()
    daemon.signal(signal.SIGTERM)
    assert daemon.wait().returncode == 0


STALLED = "StreamkernelSourceStalled"
OTHERS = {"StreamkernelRestarting", "StreamkernelDeadLetters", "StreamkernelCheckpointFailing"}


@pytest.mark.long
def test_a_source_that_stalls(broker: Cluster, topic: Topics, home: Home, launcher: Launcher, tmp_path: Path) -> None:
    """A producer's transaction stays open, and the alert comes and goes with it."""
    installed = program("prometheus")
    name = topic()
    produce(broker.bootstrap, name, rings(100))
    configure(home, broker, name)
    daemon = launcher.start(home, "run", "config.yaml")
    address = daemon.wait_for(SERVING)[1]
    producer = KafkaProducer(bootstrap_servers=broker.bootstrap, transactional_id=f"stalls-{name}")
    producer.init_transactions()
    with prometheus(installed, tmp_path, [address], hurried_rules(tmp_path)) as url:
        wait_until_clear(url, {STALLED})
        producer.begin_transaction()
        for row in rings(50):
            producer.send(name, orjson.dumps(row))
        producer.flush()
        wait_until_fired(url, {STALLED}, OTHERS)
        producer.commit_transaction()
        wait_until_clear(url, {STALLED})
    producer.close()
    daemon.signal(signal.SIGTERM)
    assert daemon.wait().returncode == 0
