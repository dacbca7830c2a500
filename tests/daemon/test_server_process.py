"""The HTTP server in a process of its own: it answers as the one in a thread, and is not in the way."""

from __future__ import annotations

import gzip
import io
import json
import logging
import os
import re
import shutil
import signal
import socket
import ssl
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client import CollectorRegistry, Counter, Gauge

from streamkernel.daemon.base.health import Health, NoStatusError
from streamkernel.daemon.base.status_snapshot import StatusHistory, StatusSnapshot
from streamkernel.daemon.config.schema import MetricsConfig
from streamkernel.daemon.monitoring.server import Server, ServerError
from streamkernel.daemon.serving import proxy
from streamkernel.daemon.serving.answers import answers_of
from streamkernel.daemon.serving.limits import HttpLimits
from streamkernel.daemon.serving.process import ServerProcess
from streamkernel.daemon.serving.published import PublishedMetrics, Scrape
from streamkernel.daemon.serving.wire import Ask, LogLine, Told, ask_line, read_asks, settings_of
from tests.daemon.conftest import Home, Launcher, write_stream
from tests.daemon.endpoint import get, values_of
from tests.daemon.raw_http import PATIENCE, answers, connect, exchange, status
from tests.daemon.raw_http import get as request
from tests.daemon.status import BoardedRun, letter
from tests.daemon.test_published_metrics import OPEN_METRICS, registry

TLS = Path(__file__).parent / "tls"
OTHERS = frozenset({"/", "/api/status", "/metrics", "/healthz", "/readyz", "/nowhere", "/api/status?since=x"})


def wait_until(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def process_of(server: Server) -> int:
    assert isinstance(server._server, ServerProcess)
    return server._server.pid


def gone(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return True


def is_free(port: int) -> bool:
    try:
        socket.create_server(("127.0.0.1", port)).close()
    except OSError:
        return False
    return True


@contextmanager
def apart(
    health: Health | None = None,
    metrics: CollectorRegistry | None = None,
    **settings: Any,
) -> Iterator[Server]:
    published = PublishedMetrics(metrics or registry())
    server = Server(MetricsConfig(port=0, **settings), published, health or Health(), apart=True)
    try:
        yield server
    finally:
        server.close()


class TestAnswers:
    """They are those of the server in a thread."""

    def test_of_all_paths_and_formats(self, here: Home) -> None:
        run = BoardedRun(here, source="a file")
        run.board.letters.add([letter("<script>\udcff", "not \ud800 a number")])
        run.learn(loss=0.5, rolling={"accuracy": 0.75})
        run.health.obstacle = lambda: "no broker answers at \udcff"
        found = []
        for is_apart in (False, True):
            server = Server(MetricsConfig(port=0), PublishedMetrics(registry()), run.health, apart=is_apart)
            try:
                fields = [f"Accept: {OPEN_METRICS}", "Accept-Encoding: gzip"]
                paths = [*sorted(OTHERS), "/metrics?name[]=weight"]
                answer = [exchange(server.port, request(path)) for path in paths]
                answer.append(exchange(server.port, request("/metrics", *fields)))
                answer.append(exchange(server.port, request("/", host="evil.example")))
                answer.append(exchange(server.port, b"POST / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"))
            finally:
                server.close()
            found.append([_without_time(one) for one in answer])
        assert found[0] == found[1]
        assert [status(one) for one in found[0][:7]] == [200, 200, 400, 200, 200, 404, 503]
        assert b"&lt;" not in found[0][1]
        assert b"\\ud800" in found[0][1]

    def test_what_was_published_is_seen_by_the_next_scrape(self) -> None:
        live = CollectorRegistry()
        counter = Counter("records", "Records.", registry=live)
        published = PublishedMetrics(live)
        server = Server(MetricsConfig(port=0), published, Health(), apart=True)
        try:
            for number in range(5):
                assert values_of(get(f"{server.url}/metrics")[1])["records_total"] == number
                counter.inc()
                published.publish()
                time.sleep(2 * proxy._KEPT_SECONDS)
        finally:
            server.close()

    def test_the_probes_follow_the_health(self) -> None:
        health = Health()
        with apart(health) as server:
            assert get(f"{server.url}/readyz") == (503, "not ready\n")
            health.ready = True
            wait_until(lambda: get(f"{server.url}/readyz") == (200, "ready\n"))
            health.obstacle = lambda: "no broker answers"
            wait_until(lambda: get(f"{server.url}/readyz") == (503, "no broker answers\n"))
            health.trouble = lambda: "the loop has not turned for 130 s"
            wait_until(lambda: get(f"{server.url}/healthz") == (503, "the loop has not turned for 130 s\n"))
            health.trouble = lambda: str(1 / 0)
            wait_until(lambda: "ZeroDivisionError" in get(f"{server.url}/healthz")[1])
            assert get(f"{server.url}/metrics")[0] == 200

    def test_a_password_is_asked_for(self) -> None:
        with apart(basic_auth={"username": "ann", "password": "s3cret"}) as server:
            assert get(f"{server.url}/metrics")[0] == 401
            assert get(f"{server.url}/metrics", "ann:s3cret")[0] == 200
            assert get(f"{server.url}/healthz")[0] == 200

    def test_connections_over_the_bound_are_refused_and_logged_here(self, caplog: pytest.LogCaptureFixture) -> None:
        with apart(max_connections=2) as server:
            held = [connect(server.port) for _ in range(2)]
            wait_until(lambda: status(exchange(server.port, request("/healthz"))) == 503)
            wait_until(lambda: "more than 2 connections to the metrics" in caplog.text)
            for connection in held:
                connection.close()
            assert answers(server.port)


def _without_time(answer: bytes) -> bytes:
    head, _, body = answer.partition(b"\r\n\r\n")
    if b"content-encoding: gzip" in head:
        body = gzip.decompress(body)  # its header has the time
    head = re.sub(rb"\r\n(content-length|date): [^\r]+", b"", head)
    return head + b"\r\n\r\n" + re.sub(rb'"now": ?[0-9.]+', b"", body)


class TestEnds:
    def test_one_that_is_killed_is_started_again(self, caplog: pytest.LogCaptureFixture) -> None:
        with apart(Health(ready=True)) as server:
            assert answers(server.port, "/readyz")
            before = process_of(server)
            os.kill(before, signal.SIGKILL)
            assert answers(server.port, "/readyz")
            assert process_of(server) != before
        assert "the process that serves the metrics was killed by signal 9: it is started again in 1 s" in caplog.text
        assert gone(process_of(server))

    def test_one_whose_questions_cannot_be_answered_is_replaced(
        self, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
    ) -> None:
        tell, failing = ServerProcess._told, [True]

        def told(process: ServerProcess, ask: Ask) -> Told:
            if failing and failing.pop():
                raise MemoryError
            return tell(process, ask)

        monkeypatch.setattr(ServerProcess, "_told", told)
        with apart(Health(ready=True)) as server:
            before = process_of(server)
            with suppress(OSError, IndexError):
                exchange(server.port, request("/readyz"))
            wait_until(lambda: process_of(server) != before)
            assert answers(server.port, "/readyz")
        assert "it is started again in 1 s" in caplog.text

    def test_a_key_that_cannot_be_used_any_more_is_said_and_may_be_mended(
        self, tmp_path: Path, caplog: pytest.LogCaptureFixture
    ) -> None:
        files = {name: shutil.copy(TLS / f"{name}.pem", tmp_path) for name in ("certificate", "key")}
        context = ssl.create_default_context(cafile=files["certificate"])
        with apart(Health(ready=True), tls=files) as server:
            Path(files["key"]).write_text("no key")
            os.kill(process_of(server), signal.SIGKILL)
            wait_until(lambda: "the metrics cannot be served: metrics.tls: " in caplog.text)
            shutil.copy(TLS / "key.pem", files["key"])
            with context.wrap_socket(connect(server.port), server_hostname="localhost") as connection:
                assert connection.version() is not None

    def test_it_is_read_no_faster_than_it_has_reason_to_send(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("streamkernel.daemon.serving.process._MOST_A_SECOND", 5)
        with apart() as server:
            process = server._server
            assert isinstance(process, ServerProcess)
            begun = time.monotonic()
            assert len(list(process._paced(iter([LogLine(30, "again")] * 6)))) == 6
            assert time.monotonic() - begun >= 0.9

    def test_what_an_administrator_allows_of_tls_is_handed_on(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("OPENSSL_CONF", "/nowhere/openssl.cnf")
        with apart() as server:
            assert answers(server.port)
            environment = Path(f"/proc/{process_of(server)}/environ").read_bytes()
            assert b"\0OPENSSL_CONF=/nowhere/openssl.cnf\0" in b"\0" + environment

    def test_modules_are_found_where_this_process_finds_them(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Also in a folder with a colon; of what is no folder at all nobody takes note."""
        monkeypatch.setattr(sys, "path", ["/with:a colon", *sys.path, 7])
        with apart() as server:
            assert answers(server.port)
            environment = Path(f"/proc/{process_of(server)}/environ").read_bytes()
            given = dict(one.split(b"=", 1) for one in environment.split(b"\0") if one)
            assert json.loads(given[b"STREAMKERNEL_SYS_PATH"]) == sys.path[:-1]

    def test_signals_for_all_processes_of_a_service_do_not_end_it(self) -> None:
        with apart(Health(ready=True)) as server:
            assert answers(server.port)
            before = process_of(server)
            for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
                os.kill(before, number)
            assert answers(server.port)
            assert process_of(server) == before

    def test_the_port_is_free_after_it(self) -> None:
        with apart() as server:
            assert answers(server.port)
        assert is_free(server.port)
        server.close()  # again

    def test_one_that_is_closed_at_once(self) -> None:
        for _ in range(3):
            with apart():
                pass

    def test_one_that_is_stopped_is_killed_at_the_end(self) -> None:
        with apart() as server:
            assert answers(server.port)
            os.kill(process_of(server), signal.SIGSTOP)
        assert gone(process_of(server))

    def test_no_process_can_be_started(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(sys, "executable", "/nowhere/python")
        with pytest.raises(ServerError, match=r"cannot start the process that serves the metrics: No such file"):
            Server(MetricsConfig(port=0), PublishedMetrics(registry()), Health(), apart=True)

    def test_a_taken_port_is_said_here(self) -> None:
        with (
            socket.create_server(("127.0.0.1", 0)) as taken,
            pytest.raises(ServerError, match=r"set metrics\.port to another one"),
        ):
            Server(MetricsConfig(port=taken.getsockname()[1]), PublishedMetrics(registry()), Health(), apart=True)


class TestDaemon:
    def start(self, home: Home, launcher: Launcher, **environment: str) -> tuple[Any, int, int]:
        write_stream(home.folder / "stream.csv", 300)
        home.configure(source={"kind": "csv", "path": "stream.csv", "target": "y", "follow": True}, metrics={"port": 0})
        daemon = launcher.start(home, "run", "config.yaml", **environment)
        port = int(daemon.wait_for(r"serving metrics at http://127\.0\.0\.1:(\d+)/")[1])
        daemon.wait_for("reading csv file")
        assert answers(port, "/readyz")
        children = Path(f"/proc/{daemon.pid}/task/{daemon.pid}/children").read_text().split()
        return daemon, port, int(children[0])

    def test_a_killed_daemon_takes_its_server_along(self, home: Home, launcher: Launcher) -> None:
        daemon, port, server = self.start(home, launcher)
        daemon.signal(signal.SIGKILL)
        wait_until(lambda: gone(server))
        wait_until(lambda: is_free(port))  # when its last thread has ended

    @pytest.mark.skipif(sys.platform != "linux", reason="elsewhere a process that is stopped stays")
    def test_also_one_that_is_stopped(self, home: Home, launcher: Launcher) -> None:
        daemon, port, server = self.start(home, launcher)
        os.kill(server, signal.SIGSTOP)
        daemon.signal(signal.SIGKILL)
        wait_until(lambda: gone(server))
        wait_until(lambda: is_free(port))  # when its last thread has ended

    def test_a_stopped_daemon_is_not_called_well(self, home: Home, launcher: Launcher) -> None:
        daemon, port, _ = self.start(home, launcher)
        daemon.signal(signal.SIGSTOP)
        try:
            time.sleep(2 * proxy._KEPT_SECONDS)
            for path in ("/healthz", "/readyz", "/metrics", "/api/status"):
                answer = exchange(port, request(path))
                assert status(answer) == 503, path
                assert answer.endswith(b"the process that learns does not answer\n")
            assert status(exchange(port, request("/"))) == 200
        finally:
            daemon.signal(signal.SIGCONT)
        assert answers(port)
        daemon.signal(signal.SIGTERM)
        assert daemon.wait().returncode == 0

    def test_it_has_no_secrets_of_the_environment_and_no_model(self, home: Home, launcher: Launcher) -> None:
        daemon, _, server = self.start(home, launcher, KAFKA_PASSWORD="hunter2hunter2")
        assert b"hunter2" not in Path(f"/proc/{server}/environ").read_bytes()
        mapped = Path(f"/proc/{server}/maps").read_text()
        assert not [name for name in ("numpy", "llvmlite", "scipy", "river") if f"/{name}" in mapped]
        daemon.signal(signal.SIGINT)
        assert daemon.wait().returncode == 0
        assert gone(server)


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
        monkeypatch.setattr(proxy, "_PATIENCE_SECONDS", 0.2)
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
