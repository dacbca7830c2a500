"""What a client of the HTTP server may not take: its time, its connections, its memory."""

from __future__ import annotations

import contextlib
import socket
import ssl
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from streamkernel.daemon.base.health import Health
from streamkernel.daemon.http import protocol
from streamkernel.daemon.http.listening import bind
from tests.daemon.raw_http import PATIENCE, answers, connect, exchange, get, read, served, status, statuses
from tests.processes import wait_until

TLS = Path(__file__).with_name("tls")
CERTIFICATE = {"certificate": str(TLS / "certificate.pem"), "key": str(TLS / "key.pem")}
HEADER = 16_384
PROBE = b"GET /readyz HTTP/1.1\r\nHost: localhost\r\n\r\n"


def post(*fields: str) -> bytes:
    return get("/body", *fields).replace(b"GET", b"POST", 1)


async def read_body(request: Request) -> Response:
    return Response(await request.body())


@pytest.fixture
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    """Deadlines that tests can wait for."""
    monkeypatch.setattr(protocol, "_LOOK_SECONDS", 0.2)


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


@pytest.mark.usefixtures("short")
class TestDeadlines:
    """A connection ends in time, whatever its client does not do."""

    @pytest.mark.parametrize(
        ("start", "drop"),
        [
            (b"", b""),
            (b"", b"\r\n"),
            (b"GET / HTTP/1.1\r\nHost: localhost\r\nX: ", b"y"),
            (b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000\r\n\r\n", b"x"),
            (b"POST / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n", b"1\r\nx\r\n"),
            (PROBE, b""),
            (PROBE + b"GET / HT", b""),
        ],
        ids=["nothing", "blank lines", "a header", "a body", "chunks", "idle", "a second one"],
    )
    def test_a_slow_request(self, start: bytes, drop: bytes) -> None:
        with served(max_body_bytes=10_000) as port:
            answer = trickle(port, start, drop)
            assert answers(port)
        assert set(statuses(answer)) <= {405, 408, 503}
        if start.startswith(b"GET / "):
            assert statuses(answer) == [408]

    def test_a_handshake_and_nothing_else(self) -> None:
        context = ssl.create_default_context(cafile=CERTIFICATE["certificate"])
        with (
            served(tls=CERTIFICATE) as port,
            context.wrap_socket(connect(port), server_hostname="localhost") as connection,
        ):
            assert statuses(read(connection)) == [408]

    def test_an_answer_that_is_not_read(self) -> None:
        # Much more than the kernel takes in between.
        with served(size=1 << 24, max_connections=1) as port, connect(port) as deaf:
            deaf.sendall(get())
            assert answers(port)  # its place is free again

    def test_an_application_that_hangs(self) -> None:
        health, go_on = Health(), threading.Event()
        health.trouble = lambda: "stuck" if go_on.wait(PATIENCE) else None
        with served(health) as port, ThreadPoolExecutor(8) as pool:
            probes = [pool.submit(exchange, port, get("/healthz")) for _ in range(8)]
            # Probes that hang hold up no scrape.
            assert answers(port, "/metrics")
            assert [one.result() for one in probes] == [b""] * 8
            go_on.set()


def test_stopping_waits_for_nobody(caplog: pytest.LogCaptureFixture) -> None:
    health, asked, go_on = Health(), threading.Event(), threading.Event()
    ended = []

    def page() -> str:
        asked.set()
        ended.append(go_on.wait(PATIENCE))
        return ""

    health.page = page
    with served(health) as port, connect(port) as half, connect(port) as idle, connect(port) as waiting:
        half.sendall(b"GET / HT")
        idle.sendall(PROBE)
        assert idle.recv(1 << 16)
        waiting.sendall(get("/"))
        assert asked.wait(PATIENCE)
    # Nor does the end of the process, which joins all threads but daemons.
    working = [thread for thread in threading.enumerate() if thread.name == "answer"]
    assert (ended, [thread.daemon for thread in working]) == ([], [True])
    go_on.set()
    assert not caplog.records


class TestConnections:
    @pytest.mark.parametrize("tls", [None, CERTIFICATE], ids=["plain", "tls"])
    def test_one_too_many_is_refused_at_once(self, tls: dict[str, str] | None) -> None:
        context = ssl.create_default_context(cafile=CERTIFICATE["certificate"])
        with served(max_connections=3, tls=tls) as port:
            kept = [connect(port) for _ in range(3)]
            with connect(port) as refused:
                answer = read(refused)
            assert statuses(answer) == ([503] if tls is None else [])
            for connection in kept:
                connection.close()

            def place() -> bool:
                """Whether a place is free."""
                try:
                    plain = connect(port)
                    with plain if tls is None else context.wrap_socket(plain, server_hostname="localhost") as one:
                        one.sendall(get("/healthz"))
                        return statuses(read(one)) == [200]
                except OSError:
                    return False

            wait_until(place, "a free place")

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
            (get("/", *["X: y"] * 100), 431),
            (post("Content-Length: 1001"), 413),
            (post("Content-Length: " + "9" * 18), 413),
            (post("Transfer-Encoding: chunked") + b"fff\r\n" + b"x" * 0xFFF + b"\r\n0\r\n\r\n", 413),
        ],
        ids=["target", "header", "fields", "length", "huge length", "chunks"],
    )
    @pytest.mark.usefixtures("short")
    def test_too_large_a_request_is_told_so(self, request_bytes: bytes, expected: int) -> None:
        with served(max_body_bytes=1000, routes=[Route("/body", read_body, methods=["POST"])]) as port:
            answer = exchange(port, request_bytes)
            assert status(exchange(port, get("/healthz"))) == 200
        assert status(answer) == expected

    @pytest.mark.parametrize(
        "start",
        [b"GET /", b"GET / HTTP/1.1\r\nX: ", post("Transfer-Encoding: chunked") + b"0\r\nX: "],
        ids=["target", "header", "trailer"],
    )
    def test_what_never_ends_is_cut_off(self, start: bytes) -> None:
        """The client is still sending, so it may not read why."""
        sent = 0
        with served(max_body_bytes=1000) as port, connect(port) as connection:
            connection.sendall(start)
            with contextlib.suppress(ConnectionResetError, BrokenPipeError):
                while sent < 2**28:
                    sent += connection.send(b"y" * 2**16)
            assert answers(port)
        assert sent < 2**28

    def test_requests_in_a_row_are_answered_in_order(self) -> None:
        paths = ["/readyz", "/healthz", "/nowhere", "/readyz", "/healthz"] * 3
        requests = b"".join(f"GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode() for path in paths)
        with served() as port:
            answer = exchange(port, requests + get("/healthz"))
            assert statuses(exchange(port, PROBE * 1000 + get("/healthz")))[-1] == 200
        assert statuses(answer) == [503, 200, 404, 503, 200] * 3 + [200]
