"""The HTTP server in a process of its own: it answers as the one in a thread, and is not in the way."""

from __future__ import annotations

import gzip
import json
import os
import re
import shutil
import signal
import socket
import ssl
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from prometheus_client import CollectorRegistry, Counter

from streamkernel.daemon.base.early_signals import STOPPING
from streamkernel.daemon.base.health import Health
from streamkernel.daemon.config.schema import MetricsConfig
from streamkernel.daemon.monitoring.server import Server, ServerError
from streamkernel.daemon.serving import proxy
from streamkernel.daemon.serving.process import ServerProcess
from streamkernel.daemon.serving.published import PublishedMetrics
from streamkernel.daemon.serving.wire import Ask, LogLine, Told
from tests.daemon.conftest import Home, Launcher, write_stream
from tests.daemon.endpoint import get, values_of
from tests.daemon.raw_http import answers, connect, exchange, status
from tests.daemon.raw_http import get as request
from tests.daemon.status import BoardedRun, letter
from tests.daemon.test_published_metrics import OPEN_METRICS, registry
from tests.processes import alive, wait_until

pytestmark = pytest.mark.usefixtures("processes")

TLS = Path(__file__).parent / "tls"
OTHERS = frozenset({"/", "/api/status", "/metrics", "/healthz", "/readyz", "/nowhere", "/api/status?since=x"})


def process_of(server: Server) -> int:
    assert isinstance(server._server, ServerProcess)
    return server._server.pid


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
                time.sleep(2 * proxy.KEPT_SECONDS)
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
            health.trouble = lambda: "the daemon has made no progress for 130 s"
            wait_until(lambda: get(f"{server.url}/healthz") == (503, "the daemon has made no progress for 130 s\n"))
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
        assert not alive(process_of(server))

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
        monkeypatch.setattr("streamkernel.daemon.serving.process.MOST_A_SECOND", 5)
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
            for number in (*STOPPING, signal.SIGUSR1):
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
        assert not alive(process_of(server))

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
        if sys.platform == "linux":  # elsewhere one that is stopped stays
            os.kill(server, signal.SIGSTOP)
        daemon.signal(signal.SIGKILL)
        wait_until(lambda: not alive(server))
        wait_until(lambda: is_free(port))  # when its last thread has ended

    def test_a_stopped_daemon_is_not_called_well(self, home: Home, launcher: Launcher) -> None:
        daemon, port, _ = self.start(home, launcher)
        daemon.signal(signal.SIGSTOP)
        try:
            time.sleep(2 * proxy.KEPT_SECONDS)
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
        assert not alive(server)
