"""Scrapes are answered from a published snapshot; the messages between the daemon and its HTTP server."""

from __future__ import annotations

import gzip
import io
import itertools
import json
import logging
import sys
import threading
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, Metric
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector
from river import linear_model

from streamkernel import KernelClassifier
from streamkernel.daemon.base.health import Health, NoStatusError
from streamkernel.daemon.base.status_snapshot import StatusHistory, StatusSnapshot
from streamkernel.daemon.config.schema import MetricsConfig
from streamkernel.daemon.lifecycle import LifecycleListener
from streamkernel.daemon.monitoring.exporter.exporter import Exporter
from streamkernel.daemon.monitoring.server import Server
from streamkernel.daemon.runtime import run
from streamkernel.daemon.serving import proxy
from streamkernel.daemon.serving.answers import answers_of
from streamkernel.daemon.serving.limits import HttpLimits
from streamkernel.daemon.serving.published import PublishedMetrics, Scrape
from streamkernel.daemon.serving.wire import Ask, LogLine, Told, ask_line, read_asks, settings_of
from streamkernel.daemon.wiring.plan import prepare
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


class _Recorded(Collector):
    """A collector that notes which threads ask it."""

    def __init__(self) -> None:
        self.threads: list[int] = []

    def collect(self) -> Iterator[Metric]:
        self.threads.append(threading.get_ident())
        yield GaugeMetricFamily("asked", "How often.", len(self.threads))

    def describe(self) -> list[Metric]:
        return []


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

    def test_more_of_them_than_are_kept(self) -> None:
        published = PublishedMetrics(registry())
        for _ in range(2):
            for number in range(50):
                answer = published.answer(Scrape(f"name[]=weight&name[]={number}"))
                assert answer.body.endswith(b"weight 0.25\n")

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

    def test_no_thread_but_the_one_that_publishes_asks_the_collectors(self) -> None:
        live, recorded = CollectorRegistry(), _Recorded()
        live.register(recorded)
        published = PublishedMetrics(live)
        with serving(published) as url:
            for query in ("", "?name[]=asked", ""):
                assert "asked 1.0" in get(url + query)[1]
            published.publish()
            assert "asked 2.0" in get(url)[1]
        assert set(recorded.threads) == {threading.get_ident()}


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


class TestWire:
    @given(st.lists(st.tuples(st.sampled_from(["health", "metrics", "\ud800"]), st.integers(0, 2**70))))
    def test_asks_come_as_they_were_sent(self, sent: list[tuple[str, int]]) -> None:
        asks = [Ask(*one) for one in sent]
        assert list(read_asks(io.BytesIO(b"".join(map(ask_line, asks))))) == asks

    @given(st.binary(max_size=300), st.binary(max_size=300))
    def test_hostile_bytes_are_the_end(self, before: bytes, after: bytes) -> None:
        lines = before + b"\n" + ask_line(Ask("health", 1)) + after
        assert all(isinstance(one, Ask | LogLine) for one in read_asks(io.BytesIO(lines)))

    @pytest.mark.parametrize(
        "line",
        [
            b"[]",
            b"{}",
            b'{"level": true, "text": "one"}',
            b'{"level": 1e9, "text": ""}',
            b'{"name": 1, "version": 1}',
            b'{"level": true, "text": null}',
            b"1",
            b'"',
            b"[" * 50_000,
        ],
    )
    def test_what_is_no_question_is_the_end(self, line: bytes) -> None:
        assert list(read_asks(io.BytesIO(line + b"\n" + ask_line(Ask("health", 1))))) == []

    def test_a_long_text_is_cut_to_a_line(self) -> None:
        (found,) = read_asks(io.BytesIO(LogLine(logging.WARNING, "\U0001f600" * 100_000).to_line()))
        assert isinstance(found, LogLine)
        assert len(found.text) == 4096


class TestProxy:
    """The process that learns is asked once for all who ask in a moment, and sends what is new alone."""

    def proxy(self, health: Health, metrics: PublishedMetrics) -> tuple[proxy.DaemonProxy, list[Ask], list[float]]:
        asked: list[Ask] = []
        now = [100.0]
        told = answers_of(metrics, health)

        def ask(question: Ask) -> None:
            asked.append(question)
            made.take(Told(question.name, *told[question.name](question.version)))

        made = proxy.DaemonProxy(
            settings_of(MetricsConfig(port=0), HttpLimits(), "metrics", "the metrics", health), ask, lambda: now[0]
        )
        return made, asked, now

    def test_a_flood_of_scrapes_asks_seldom(self) -> None:
        live = CollectorRegistry()
        gauge = Gauge("weight", "A weight.", registry=live)
        published = PublishedMetrics(live)
        made, asked, now = self.proxy(Health(), published)
        for _ in range(1000):
            assert b"weight 0.0" in made.answer(Scrape()).body
        assert asked == [Ask("metrics", 0)]
        now[0] += 1.0
        made.answer(Scrape())
        assert asked[1:] == [Ask("metrics", 1)]
        gauge.set(2.0)
        published.publish()
        now[0] += 1.0
        assert b"weight 2.0" in made.answer(Scrape()).body

    def test_who_comes_while_it_is_silent_does_not_wait_for_long(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(proxy, "PATIENCE_SECONDS", 0.2)
        asked: list[Ask] = []
        made = proxy.DaemonProxy(
            settings_of(MetricsConfig(port=0), HttpLimits(), "metrics", "the metrics", Health()), asked.append
        )
        for _ in range(200):  # 40 s, if each waited
            with pytest.raises(NoStatusError, match="does not answer"):
                made.answer(Scrape())
        assert asked == [Ask("metrics", 0)]
        made.take(Told("metrics", 1, ()))
        assert made.answer(Scrape()).status == 200

    def test_a_status_without_a_snapshot_is_none(self) -> None:
        made, _, _ = self.proxy(Health(), PublishedMetrics(CollectorRegistry()))
        assert made.health.status is None

    def test_who_waits_when_the_other_process_ends_is_told(self) -> None:
        made = proxy.DaemonProxy(
            settings_of(MetricsConfig(port=0), HttpLimits(), "metrics", "the metrics", Health()), lambda _: None
        )
        made.end()
        with pytest.raises(NoStatusError, match="has ended"):
            made.answer(Scrape())
        assert made.health.trouble() == "the process that learns has ended"

    @given(st.floats(allow_nan=True), st.text(), st.lists(st.floats(), max_size=5))
    def test_the_status_is_json_whatever_it_says(self, now: float, detail: str, values: list[float]) -> None:
        history = StatusHistory(5.0, [float(at) for at in range(len(values))], {"loss": values})
        body = StatusSnapshot(b'{"version":1}', history).to_json(1.5, ("trouble", detail), -1.0)
        found = json.loads(body, parse_constant=lambda name: pytest.fail(name))
        assert found["state"]["detail"] == detail
        assert len(found["history"]["series"]["loss"]) == len(values)
        assert now != now or found["now"] == 1.5
