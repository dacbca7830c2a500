"""What a client of the HTTP server may not take: its time, its connections, its memory."""

from __future__ import annotations

import os
import resource
import socket
import ssl
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest

from streamkernel.daemon.base.health import Health
from streamkernel.daemon.serving.bind import bind
from streamkernel.daemon.serving.limits import HttpLimits, affordable_connections
from tests.daemon.raw_http import PATIENCE, SHORT, answers, connect, exchange, get, read, served, status, statuses
from tests.processes import wait_until

TLS = Path(__file__).with_name("tls")
SMALL = HttpLimits(body_bytes=1000)
HEADER = SMALL.header_bytes
CERTIFICATE = {"certificate": str(TLS / "certificate.pem"), "key": str(TLS / "key.pem")}


def trickle(port: int, start: bytes, drop: bytes) -> bytes:
    """Send a beginning, then a little at a time until the server has enough of it; gives its answer."""
    with connect(port) as connection:
        connection.sendall(start)
        connection.settimeout(0.02)
        deadline = time.monotonic() + PATIENCE
        answer = b""
        while time.monotonic() < deadline:
            try:
                connection.sendall(drop)
                part = connection.recv(1 << 16)
            except TimeoutError:
                continue
            except (ConnectionResetError, BrokenPipeError):
                return answer
            answer += part
            if not part:
                return answer
    raise AssertionError("the connection was never closed")


class TestDeadlines:
    """A connection ends in time, whatever its client does not do."""

    @pytest.mark.parametrize(
        ("start", "drop"),
        [
            (b"", b""),
            (b"", b"\r\n"),
            (b"G", b""),
            (b"GET / HTTP/1.1\r\nHost: localhost\r\n", b"X: y\r\n"),
            (b"GET / HTTP/1.1\r\nHost: localhost\r\nX: ", b"y"),
            (b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000\r\n\r\n", b"x"),
            (b"POST / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n", b"1\r\nx\r\n"),
            (b"GET /readyz HTTP/1.1\r\nHost: localhost\r\n\r\n", b""),
            (b"GET /readyz HTTP/1.1\r\nHost: localhost\r\n\r\nGET / HT", b""),
        ],
        ids=["nothing", "blank lines", "a letter", "headers", "a header", "a body", "chunks", "idle", "a second one"],
    )
    def test_a_slow_request(self, start: bytes, drop: bytes) -> None:
        with served(limits=SHORT) as port:
            answer = trickle(port, start, drop)
            assert answers(port)
        assert set(statuses(answer)) <= {408, 405, 503}
        if start.startswith(b"GET / HTTP/1.1"):
            assert statuses(answer) == [408]
            assert b"the request was not received within 0.2 s" in answer

    def test_a_slow_handshake(self) -> None:
        hello = bytes.fromhex("16030100ff")  # a record of TLS that promises 255 bytes
        with served(limits=SHORT, tls=CERTIFICATE) as port:
            assert trickle(port, b"", b"") == b""
            assert trickle(port, hello, b"\1") == b""

    def test_a_handshake_and_nothing_else(self) -> None:
        context = ssl.create_default_context(cafile=CERTIFICATE["certificate"])
        with served(limits=SHORT, tls=CERTIFICATE) as port:
            with context.wrap_socket(connect(port), server_hostname="localhost") as connection:
                assert read(connection) == b""
            with context.wrap_socket(connect(port), server_hostname="localhost") as connection:
                connection.sendall(b"GET / HTTP/1.1\r\n")
                assert statuses(read(connection)) == [408]

    def test_an_answer_that_is_not_read(self) -> None:
        # Much more than the kernel takes in between.
        limits = replace(SHORT, receive_seconds=PATIENCE, answer_seconds=0.4)
        with served(limits=limits, size=1 << 24, max_connections=1) as port, connect(port) as deaf:
            deaf.sendall(get())
            assert answers(port)  # its place is free again

    @pytest.mark.usefixtures("processes")
    def test_an_answer_that_is_read_slowly_but_in_time(self) -> None:
        with served(limits=SHORT, size=1 << 24) as port, connect(port) as slow:
            slow.sendall(get())
            time.sleep(3 * SHORT.receive_seconds)
            assert len(read(slow)) > 1 << 24

    def test_an_application_that_hangs(self) -> None:
        health, go_on = Health(), threading.Event()
        health.trouble = lambda: "stuck" if go_on.wait(PATIENCE) else None
        limits = replace(SHORT, receive_seconds=PATIENCE, answer_seconds=0.4)
        with served(health, limits) as port, ThreadPoolExecutor(8) as pool:
            probes = list(pool.map(lambda _: exchange(port, get("/healthz")), range(8)))
            assert probes == [b""] * 8
            # Probes that hang hold up no scrape.
            assert answers(port, "/metrics")
            go_on.set()

    def test_stopping_waits_for_nobody(self) -> None:
        with served(limits=replace(SHORT, receive_seconds=PATIENCE)) as port:
            connections = [connect(port) for _ in range(5)]
            connections[0].sendall(b"GET / HT")
            connections[1].sendall(b"GET /readyz HTTP/1.1\r\nHost: localhost\r\n\r\n")
            assert connections[1].recv(1 << 16)
        for connection in connections:
            with connection:
                assert read(connection) in (b"", b"not ready\n")

    def test_stopping_waits_for_no_answer(self, caplog: pytest.LogCaptureFixture) -> None:
        health, asked, go_on = Health(), threading.Event(), threading.Event()
        ended = []

        def page() -> str:
            asked.set()
            ended.append(go_on.wait(PATIENCE))
            return ""

        health.page = page
        with served(health, SHORT) as port, connect(port) as connection:
            connection.sendall(get("/"))
            assert asked.wait(PATIENCE)
        # Nor does the end of the process, which joins all threads but daemons.
        working = [thread for thread in threading.enumerate() if thread.name == "answer"]
        assert (ended, [thread.daemon for thread in working]) == ([], [True])
        go_on.set()
        assert not caplog.records


class TestConnections:
    """There are no more than there may be, in whatever state they are."""

    @pytest.mark.parametrize("tls", [None, CERTIFICATE], ids=["plain", "tls"])
    def test_one_too_many_is_refused_at_once(self, tls: dict[str, str] | None) -> None:
        limits = replace(SHORT, receive_seconds=PATIENCE)
        with served(limits=limits, max_connections=3, tls=tls) as port:
            kept = [connect(port) for _ in range(3)]
            with connect(port) as refused:
                answer = read(refused)
            assert statuses(answer) == ([503] if tls is None else [])
            for connection in kept:
                connection.close()

    def test_their_places_are_free_when_they_are_gone(self) -> None:
        with served(limits=SHORT, max_connections=2, tls=CERTIFICATE) as port:
            context = ssl.create_default_context(cafile=CERTIFICATE["certificate"])
            for _ in range(3):
                kept = [connect(port) for _ in range(10)]
                for connection in kept:
                    with connection:
                        assert read(connection) == b""
            with context.wrap_socket(connect(port), server_hostname="localhost") as connection:
                connection.sendall(get("/healthz"))
                assert status(read(connection)) in (200, 408)

    def test_the_limit_of_open_files_is_raised_or_fewer_are_taken(self, monkeypatch: pytest.MonkeyPatch) -> None:
        limit = [1024, 4096]
        monkeypatch.setattr(resource, "getrlimit", lambda _: tuple(limit))
        monkeypatch.setattr(resource, "setrlimit", lambda _, to: limit.__setitem__(0, to[0]))
        assert (affordable_connections(64), limit[0]) == (64, 1024)
        assert (affordable_connections(1000), limit[0]) == (1000, 1256)
        assert affordable_connections(10_000) == 4096 - 256
        assert limit[0] == 4096
        limit[:] = [64, 64]
        assert affordable_connections(64) == 4

    def test_where_there_are_no_descriptors_it_waits_for_some(self, caplog: pytest.LogCaptureFixture) -> None:
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        with served() as port, socket.socket() as client:
            assert answers(port)  # all is imported
            free = os.dup(0)
            os.close(free)
            resource.setrlimit(resource.RLIMIT_NOFILE, (free, hard))
            try:
                client.settimeout(PATIENCE)
                client.connect(("127.0.0.1", port))
                client.sendall(get("/healthz"))
                wait_until(lambda: "cannot accept connections for now: Too many open files" in caplog.text)
            finally:
                resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
            assert status(read(client)) == 200

    def test_answers_are_not_delayed(self) -> None:
        # asyncio sets TCP_NODELAY only where the socket's protocol is named: 40 ms for each answer otherwise.
        with bind("127.0.0.1", 0) as listening:
            assert listening.proto == socket.IPPROTO_TCP


class TestSizes:
    @pytest.mark.parametrize(
        ("request_bytes", "expected"),
        [
            (get("/" + "a" * HEADER), 431),
            (get("/", "X: " + "a" * HEADER), 431),
            (get("/", *["X: y"] * SMALL.header_fields), 431),
            (b"GET /" + b"a" * 4 * HEADER, 431),
            (b"GET / HTTP/1.1\r\nX: " + b"a" * 4 * HEADER, 431),
            (b"GET / HTTP/1.1\r\n" + b"X" * 4 * HEADER, 431),
            (get("/", "Transfer-Encoding: chunked") + b"0\r\n" + b"X: y\r\n" * 10_000, 431),
            (get("/", f"Content-Length: {SMALL.body_bytes + 1}"), 413),
            (get("/", "Content-Length: " + "9" * 19), 413),
            (get("/", "Transfer-Encoding: chunked") + b"fff\r\n" + b"x" * 0xFFF + b"\r\nff\r\n", 413),
        ],
        ids=[
            *("target", "header", "fields", "endless target", "endless header", "endless name", "trailers"),
            *("length", "huge length", "chunks"),
        ],
    )
    def test_too_large_a_request_is_told_so(self, request_bytes: bytes, expected: int) -> None:
        with served(limits=SMALL) as port:
            answer = exchange(port, request_bytes)
            assert status(exchange(port, get("/healthz"))) == 200
        # One that is whole but for its body may be answered before the rest has come.
        assert statuses(answer)[-1] in ((expected, 200) if b"chunked" in request_bytes else (expected,))

    def test_a_body_within_the_limit_is_read_and_ignored(self) -> None:
        with served() as port:
            answer = exchange(port, get("/readyz", "Content-Length: 5") + b"hello")
        assert statuses(answer) == [503]

    def test_a_trailer_without_end(self) -> None:
        start = get("/readyz", "Transfer-Encoding: chunked").replace(b"Connection: close\r\n", b"") + b"0\r\nX: "
        with served(limits=SMALL) as port:
            answer = exchange(port, start + b"y" * 1_000_000)
        assert answer.count(b"HTTP/1.1") <= 2

    def test_requests_in_a_row_are_answered_in_order(self) -> None:
        paths = ["/readyz", "/healthz", "/nowhere", "/readyz", "/healthz"] * 3
        requests = b"".join(f"GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode() for path in paths)
        with served() as port:
            answer = exchange(port, requests + get("/healthz"))
        assert statuses(answer) == [503, 200, 404, 503, 200] * 3 + [200]

    def test_too_many_in_a_row(self) -> None:
        many = b"GET /readyz HTTP/1.1\r\nHost: localhost\r\n\r\n" * 5000
        with served() as port:
            answer = statuses(exchange(port, many))
            assert status(exchange(port, get("/healthz"))) == 200
        assert answer[-1] == 429
        assert set(answer[:-1]) == {503}
        assert len(answer) <= HttpLimits().pipelined + 2

    def test_what_comes_before_garbage_is_answered(self) -> None:
        with served() as port:
            answer = exchange(port, b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\ngarbage\r\n\r\n")
        assert statuses(answer) == [200, 400]
