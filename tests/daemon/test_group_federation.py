"""The metrics of a member are those of its children."""

from __future__ import annotations

import socket
import subprocess
from collections.abc import Iterator

import pytest
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.parser import text_string_to_metric_families

from streamkernel import AdaptiveKernelClassifier
from streamkernel.daemon.base.health import Health
from streamkernel.daemon.config.schema import MetricsConfig
from streamkernel.daemon.group.federation import Federation, ask
from streamkernel.daemon.http.server import Server
from streamkernel.daemon.monitoring.exporter.exporter import Exporter
from tests.ports import closed_port


def exported(partition: int) -> CollectorRegistry:
    registry = CollectorRegistry()
    Counter("streamkernel_dead", "With a \\ and\na line.", ["reason"], registry=registry).labels('a "b"').inc(partition)
    lag = Gauge("streamkernel_lag", "To come.", ["topic", "partition"], registry=registry)
    lag.labels("t", str(partition)).set(float("nan") if partition else 7)
    Histogram("streamkernel_seconds", "How long.", buckets=[0.1, 1], registry=registry).observe(0.5)
    return registry


@pytest.fixture(params=[None, {"username": "me", "password": "s3cret"}])
def settings(request: pytest.FixtureRequest) -> MetricsConfig:
    return MetricsConfig(port=0, basic_auth=request.param)


@pytest.fixture
def children(settings: MetricsConfig) -> Iterator[dict[int, tuple[str, int]]]:
    servers = {partition: Server(settings, exported(partition), Health()) for partition in (0, 1)}
    yield {partition: ("127.0.0.1", server.port) for partition, server in servers.items()}
    for server in servers.values():
        server.close()


def test_all_series_of_all_children_told_apart(children: dict[int, tuple[str, int]], settings: MetricsConfig) -> None:
    federation = Federation(lambda: children, lambda: 3, settings.basic_auth)
    text = generate_latest(federation.registry).decode()
    families = list(text_string_to_metric_families(text))
    assert len({family.name for family in families}) == len(families)
    found = [sample for family in families for sample in family.samples]
    values = {(sample.name, *sorted(sample.labels.items())): sample.value for sample in found}
    assert len(values) == len(found)
    assert values["streamkernel_group_partitions",] == 3
    for partition in (0, 1):
        own = ("partition", str(partition))
        assert values["streamkernel_dead_total", own, ("reason", 'a "b"')] == partition
        assert values["streamkernel_seconds_bucket", ("le", "1.0"), own] == 1
        assert values["streamkernel_seconds_sum", own] == 0.5
    # The lag has the label by itself.
    assert values["streamkernel_lag", ("partition", "0"), ("topic", "t")] == 7
    for line in text.splitlines():
        assert line.count("partition=") <= 1, line
    # What a child says of its metrics stays as it was.
    own_text = generate_latest(exported(0)).decode()
    assert {line for line in own_text.splitlines() if line.startswith("#")} <= set(text.splitlines())


def test_a_child_that_does_not_answer_is_left_out(
    children: dict[int, tuple[str, int]], settings: MetricsConfig, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("streamkernel.daemon.group.federation.ANSWER_SECONDS", 0.2)
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    with socket.create_server(("127.0.0.1", 0)) as deaf, socket.socket() as gone:
        addresses = {**children, 2: deaf.getsockname(), 3: ("127.0.0.1", closed_port(gone))}
        federation = Federation(lambda: addresses, lambda: 4, settings.basic_auth)
        text = generate_latest(federation.registry).decode()
        answers = ask(addresses, "/healthz")
    assert 'partition="1"' in text
    assert 'partition="2"' not in text
    assert [status for status, _ in answers.values()] == [200, 200, 0, 0]
    assert answers[2][1].startswith("no answer (")


def test_promtool_finds_no_fault(promtool: str) -> None:
    model = AdaptiveKernelClassifier(seed=1)
    model.learn_one({"a": 1.0}, "x")
    exporters = [Exporter(model, ["accuracy"], 100) for _ in range(2)]
    servers = [Server(MetricsConfig(port=0), exporter.registry, Health()) for exporter in exporters]
    try:
        addresses = {partition: ("127.0.0.1", server.port) for partition, server in enumerate(servers)}
        text = generate_latest(Federation(lambda: addresses, lambda: 2).registry)
    finally:
        for server in servers:
            server.close()
    checked = subprocess.run([promtool, "check", "metrics"], input=text, capture_output=True, check=False)
    assert (checked.returncode, checked.stderr) == (0, b"")
    # Nothing that a daemon tells is missing, and each is what it was.
    said = {line for line in generate_latest(exporters[0].registry).splitlines() if line.startswith(b"#")}
    assert said <= set(text.splitlines())
