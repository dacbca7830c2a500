"""Scrapes are answered from a snapshot that the thread that learns has published, whatever it does meanwhile."""

from __future__ import annotations

import gzip
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from prometheus_client import CollectorRegistry
from river import linear_model

from streamkernel.daemon.assembly.plan import prepare
from streamkernel.daemon.base.health import Health
from streamkernel.daemon.config.schema import MetricsConfig
from streamkernel.daemon.http.published import PublishedMetrics, answer_scrape
from streamkernel.daemon.http.server import Server
from streamkernel.daemon.monitoring.exporter import Exporter
from streamkernel.daemon.runtime import LifecycleListener, run
from tests.daemon.conftest import Home, write_stream
from tests.daemon.endpoint import get, values_of

OPEN_METRICS = "application/openmetrics-text; version=1.0.0"


@contextmanager
def serving(metrics: CollectorRegistry | PublishedMetrics) -> Iterator[str]:
    server = Server(MetricsConfig(port=0), metrics, Health())
    try:
        yield f"{server.url}/metrics"
    finally:
        server.close()


class TestSnapshot:
    """It is of one moment, and stays as it is."""

    def test_what_changes_is_not_seen_before_it_is_published(self) -> None:
        exporter = Exporter(linear_model.LogisticRegression(), ["accuracy"], 10)
        with serving(exporter.served) as url:
            exporter.failed()
            assert values_of(get(url)[1])["checkpoint_failures_total"] == 0
            exporter.publish()
            assert values_of(get(url)[1])["checkpoint_failures_total"] == 1

    def test_a_scrape_may_ask_for_names_a_format_and_compression(self) -> None:
        exporter = Exporter(linear_model.LogisticRegression(), ["accuracy"], 10)
        body, _ = answer_scrape(exporter.served, "name[]=streamkernel_records_consumed_total", OPEN_METRICS, "gzip")
        text = gzip.decompress(body)
        assert b"\nstreamkernel_records_consumed_total 0.0\n" in text
        assert b"learned" not in text
        assert text.endswith(b"# EOF\n")


class _Scraper(LifecycleListener):
    """Scrapes a daemon, from another thread, while its model stands still at a record."""

    def __init__(self) -> None:
        self.standing, self.let_go = threading.Event(), threading.Event()
        self.answers: list[tuple[int, str]] = []
        self._thread = threading.Thread(target=self._scrape)
        self._url = ""

    def serving(self, host: str, port: int) -> None:
        self._url = f"http://{host}:{port}"
        self._thread.start()

    def join(self) -> None:
        self._thread.join(60)

    def _scrape(self) -> None:
        try:
            if self.standing.wait(60):
                self.answers = [get(f"{self._url}{path}") for path in ("/metrics", "/", "/healthz", "/metrics")]
        finally:
            self.let_go.set()


@pytest.mark.usefixtures("processes")
def test_a_daemon_that_stands_still_answers_from_the_last_snapshot(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    write_stream(home.folder / "stream.csv", 200, bad=False)
    scraper, threads, learn_one = _Scraper(), set(), linear_model.LogisticRegression.learn_one

    def stand(model: Any, *record: Any, **named: Any) -> Any:
        threads.add(threading.get_ident())
        scraper.standing.set()
        assert scraper.let_go.wait(60)
        return learn_one(model, *record, **named)

    def measure(model: Any) -> int:  # noqa: ARG001
        threads.add(threading.get_ident())
        return 1

    monkeypatch.setattr(linear_model.LogisticRegression, "learn_one", stand)
    monkeypatch.setattr(linear_model.LogisticRegression, "_raw_memory_usage", property(measure))
    home.configure(
        source={"kind": "csv", "path": "stream.csv", "target": "y", "target_type": "bool"},
        model=[{"river.compose.Select": {"args": ["a", "b"]}}, "river.linear_model.LogisticRegression"],
        metrics={"port": 0},
    )
    assert run(prepare(home.config), listener=scraper).taken == 200
    scraper.join()
    assert [status for status, _ in scraper.answers] == [200] * 4
    assert scraper.answers[0] == scraper.answers[3]
    assert values_of(scraper.answers[0][1])["records_learned_total"] == 0
    assert threads == {threading.get_ident()}


@pytest.mark.usefixtures("processes")
def test_turns_of_threads_are_as_before_when_a_run_has_ended(home: Home) -> None:
    write_stream(home.folder / "stream.csv", 50, bad=False)
    before, seen = sys.getswitchinterval(), []

    class _Reading(LifecycleListener):
        def reading(self, record: int) -> None:  # noqa: ARG002
            seen.append(sys.getswitchinterval())

    for metrics in ({"port": 0}, None):
        home.configure(metrics=metrics)
        run(prepare(home.config), fresh=True, listener=_Reading())
    assert seen == [min(before, 0.001), before]
    assert sys.getswitchinterval() == before
