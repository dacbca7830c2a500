"""Scrapes are answered from a snapshot that the thread that learns has published, whatever it does meanwhile."""

from __future__ import annotations

import gzip
import itertools
import sys
import threading
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
from river import linear_model

from streamkernel import KernelClassifier
from streamkernel.daemon.assembly.plan import prepare
from streamkernel.daemon.base.health import Health
from streamkernel.daemon.config.schema import MetricsConfig
from streamkernel.daemon.http.published import PublishedMetrics
from streamkernel.daemon.http.server import Server
from streamkernel.daemon.lifecycle import LifecycleListener
from streamkernel.daemon.monitoring.exporter import Exporter
from streamkernel.daemon.runtime import run
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


def registry() -> CollectorRegistry:
    made = CollectorRegistry()
    Counter("records", "Records.", ["reason"], registry=made).labels('a "quoted"\nreason').inc(3)
    Gauge("weight", "A weight.", registry=made).set(0.25)
    Histogram("seconds", "Seconds.", registry=made).observe(0.3)
    return made


def asked(url: str, **fields: str) -> tuple[dict[str, str], bytes]:
    request = urllib.request.Request(url, headers={name.replace("_", "-"): value for name, value in fields.items()})
    with urllib.request.urlopen(request, timeout=30) as answer:
        return {name.lower(): value for name, value in answer.headers.items()}, answer.read()


class TestAnswers:
    """They are those of prometheus_client for the same metrics."""

    def test_every_format_and_selection(self) -> None:
        live = registry()
        queries = ("", "?name[]=weight", "?name[]=records_total&name[]=seconds_sum", "?name[]=no")
        accepted = ("*/*", OPEN_METRICS, "text/plain; version=0.0.4", "\xff, nonsense;;;q")
        with serving(live) as one, serving(PublishedMetrics(live)) as other:
            for query, accept, encoding in itertools.product(queries, accepted, ("identity", "gzip")):
                found = []
                for url in (one, other):
                    headers, body = asked(url + query, Accept=accept, Accept_Encoding=encoding)
                    again = asked(url + query, Accept=accept, Accept_Encoding=encoding)[1]
                    text = gzip.decompress(body) if encoding == "gzip" else body
                    assert text == (gzip.decompress(again) if encoding == "gzip" else again)
                    # A selection of a registry comes in any order.
                    kinds = headers["content-type"], headers.get("content-encoding")
                    found.append((*kinds, sorted(text.splitlines())))
                assert found[0] == found[1]
                assert (b"weight 0.25" in found[1][2]) == (query in ("", "?name[]=weight"))
                assert text.endswith(b"# EOF\n") == (accept == OPEN_METRICS)

    def test_all_counters_are_there_before_the_first_record(self) -> None:
        exporter = Exporter(KernelClassifier(), ["accuracy"], 1000)
        with serving(exporter.served) as url:
            values = values_of(get(url)[1])
        assert values["records_learned_total"] == values["records_consumed_total"] == 0
        assert values["records_dead_lettered_total{reason=refused}"] == 0
        assert values["feature_blocks_total{action=grown}"] == 0


class TestSnapshot:
    """It is of one moment, and stays as it is."""

    def test_what_changes_is_not_seen_before_it_is_published(self) -> None:
        exporter = Exporter(linear_model.LogisticRegression(), ["accuracy"], 10)
        with serving(exporter.served) as url:
            exporter.failed()
            assert values_of(get(url)[1])["checkpoint_failures_total"] == 0
            exporter.publish()
            assert values_of(get(url)[1])["checkpoint_failures_total"] == 1

    def test_figures_that_go_together_are_seen_together_while_they_change(self) -> None:
        live = CollectorRegistry()
        first, seconds = Counter("first", "First.", registry=live), Histogram("seconds", "Seconds.", registry=live)
        last = Counter("last", "Last.", ["reason"], registry=live)
        published = PublishedMetrics(live)
        done = threading.Event()

        def learn() -> None:
            while not done.is_set():
                first.inc()
                seconds.observe(1.0)
                last.labels("a").inc()
                published.publish()

        learning = threading.Thread(target=learn)
        learning.start()
        seen = [0.0]
        try:
            with serving(published) as url:
                deadline = time.monotonic() + 30
                while len(seen) < 100 and time.monotonic() < deadline:
                    values = values_of(get(url)[1])
                    count = values["first_total"]
                    assert values["seconds_count"] == values["seconds_sum"] == count
                    assert values.get("last_total{reason=a}", 0) == count
                    assert count >= seen[-1]
                    seen.append(count)
        finally:
            done.set()
            learning.join()
        assert seen[-1] > seen[1]


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
