"""The messages between the process that learns and that of its HTTP server, and what the server makes of them."""

from __future__ import annotations

import io
import json
import logging

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client import CollectorRegistry, Gauge

from streamkernel.daemon.base.health import Health, NoStatusError
from streamkernel.daemon.base.status_snapshot import StatusHistory, StatusSnapshot
from streamkernel.daemon.config.schema import MetricsConfig
from streamkernel.daemon.serving import proxy
from streamkernel.daemon.serving.answers import answers_of
from streamkernel.daemon.serving.limits import HttpLimits
from streamkernel.daemon.serving.published import PublishedMetrics, Scrape
from streamkernel.daemon.serving.wire import Ask, LogLine, Told, ask_line, read_asks, settings_of


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
