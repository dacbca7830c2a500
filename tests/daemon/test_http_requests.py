"""What the HTTP server makes of odd and hostile requests; its probes, TLS and passwords."""

from __future__ import annotations

import logging
import socket
import ssl
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
from prometheus_client import CollectorRegistry
from pydantic import ValidationError

from streamkernel.daemon.base.health import Health
from streamkernel.daemon.config.schema import MetricsConfig
from streamkernel.daemon.http.listening import bind
from streamkernel.daemon.http.rate_limit import RateLimit
from streamkernel.daemon.http.server import Server, ServerError
from tests.daemon.endpoint import get as fetch
from tests.daemon.endpoint import serving
from tests.daemon.raw_http import answers, exchange, get, served, status

ALLOWED = ["metrics.example.org", "*.example.com", "my_daemon"]


@pytest.fixture(scope="module")
def port() -> Iterator[int]:
    """A server that has learned nothing yet."""
    with served(allowed_hosts=ALLOWED) as found:
        yield found


class TestHost:
    """A page of another site cannot read what is served here under a name of its own."""

    @pytest.mark.parametrize(
        "host",
        [
            *("localhost", "LOCALHOST:9108", "localhost.", "a.localhost", "127.0.0.1", "127.0.0.1:80", "[::1]:9108"),
            *("10.1.2.3:9108", socket.gethostname(), "metrics.example.org", "a.b.example.com", "my_daemon:9108"),
        ],
    )
    def test_ours(self, port: int, host: str) -> None:
        for path in ("/", "/metrics", "/healthz"):
            assert status(exchange(port, get(path, host=host))) == 200

    @pytest.mark.parametrize(
        "host", ["evil.example", "evil.example:9108", "localhost.evil.example", "127.0.0.1.evil.example", "example.com"]
    )
    def test_not_ours(self, port: int, host: str) -> None:
        for path in ("/", "/metrics", "/healthz", "/readyz", "/nowhere"):
            answer = exchange(port, get(path, host=host))
            assert status(answer) == 421
            assert b"add it to metrics.allowed_hosts" in answer
            assert b"streamkernel_" not in answer

    def test_the_configured_host(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(socket, "gethostname", lambda: "elsewhere")
        monkeypatch.setattr("streamkernel.daemon.http.server.bind", lambda _, port: bind("127.0.0.1", port))
        with served(host="metrics.internal") as port:
            assert status(exchange(port, get(host="metrics.internal"))) == 200
            assert status(exchange(port, get(host="metrics.external"))) == 421

    def test_all_are_allowed_where_that_is_asked_for(self) -> None:
        with served(allowed_hosts=["*"]) as port:
            assert status(exchange(port, get(host="evil.example"))) == 200

    @pytest.mark.parametrize(
        "host", ["", " ", "a b", "user@localhost", "localhost:port", "[::1", "a/b", "localhost,b", "é"]
    )
    def test_none_at_all(self, port: int, host: str) -> None:
        assert status(exchange(port, get(host=host))) == 400

    def test_missing_and_twice(self, port: int) -> None:
        assert status(exchange(port, b"GET / HTTP/1.1\r\nConnection: close\r\n\r\n")) == 400
        assert status(exchange(port, get("/", "Host: localhost"))) == 400
        assert status(exchange(port, b"GET /healthz HTTP/1.0\r\n\r\n")) == 200
        assert status(exchange(port, get(host="evil.example", version="1.0"))) == 421

    @pytest.mark.parametrize("name", ["http://a", "a:80", "a/b", "", "*a", "a.*", "**", "a b"])
    def test_a_name_in_the_configuration_that_is_none(self, name: str) -> None:
        with pytest.raises(ValidationError, match="must be a host name without scheme and port"):
            MetricsConfig(allowed_hosts=[name])


class TestOddRequests:
    @pytest.mark.parametrize(
        "request_bytes",
        [
            *(
                b"\0" * 100,
                b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc",
                b"hello\r\n\r\n",
                b"GET\r\n\r\n",
                b"get / HTTP/1.1\r\n\r\n",
            ),
            *(b"BREW / HTTP/1.1\r\nHost: localhost\r\n\r\n", b"GET / HTTP/3.0\r\nHost: localhost\r\n\r\n"),
            *(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", b"CONNECT localhost:80 HTTP/1.1\r\nHost: localhost\r\n\r\n"),
            *(get("*"), get("metrics"), get("/\x80"), get("/", "X : y"), get("/", "X: \0"), get("/", " folded")),
            get("/", "Content-Length: 1", "Content-Length: 2"),
            get("/", "Content-Length: -1"),
            get("/", "Content-Length: 3", "Transfer-Encoding: chunked") + b"0\r\n\r\n",
            get("/", "Transfer-Encoding: chunked") + b"zz\r\n",
        ],
    )
    def test_are_refused_and_harm_nothing(
        self, port: int, request_bytes: bytes, caplog: pytest.LogCaptureFixture
    ) -> None:
        answer = exchange(port, request_bytes)
        assert answers(port)
        assert status(answer) in (400, 404, 405)
        assert not [record for record in caplog.records if record.levelno > logging.DEBUG]

    def test_only_get_and_head(self, port: int) -> None:
        for method, path in (("POST", "/"), ("DELETE", "/metrics"), ("OPTIONS", "/healthz")):
            answer = exchange(port, get(path).replace(b"GET", method.encode(), 1))
            assert status(answer) == 405
            assert b"\r\nallow: GET, HEAD\r\n" in answer
            assert answer.endswith(b"only GET, HEAD\n")
        for path in ("/", "/metrics", "/readyz", "/nowhere"):
            whole, head = exchange(port, get(path)), exchange(port, get(path).replace(b"GET", b"HEAD", 1))
            assert head.endswith(b"\r\n\r\n")
            assert status(head) == status(whole)
            assert b"\r\ncontent-length: %d\r\n" % len(whole.partition(b"\r\n\r\n")[2]) in head

    def test_browsers_are_told_what_not_to_do(self, port: int) -> None:
        answers = [exchange(port, get(path)) for path in ("/", "/metrics", "/nowhere")]
        for answer in answers:
            assert b"\r\nx-content-type-options: nosniff\r\n" in answer
            assert b"frame-ancestors 'none'" in answer
            assert b"\r\ndate: " in answer
            assert b"\r\nserver: " not in answer

    def test_a_page_that_fails_is_one_error_in_the_log(self, caplog: pytest.LogCaptureFixture) -> None:
        health = Health()
        health.page = lambda: str(1 / 0)
        with served(health) as port:
            assert [status(exchange(port, get("/"))) for _ in range(5)] == [500] * 5
            assert status(exchange(port, get("/healthz"))) == 200
        errors = [record for record in caplog.records if record.levelno >= logging.WARNING]
        assert len(errors) <= 1  # less than one where another test's was within the minute


def test_a_kind_of_message_comes_once_a_minute(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    limit = RateLimit()

    def passed(text: str) -> str | None:
        record = logging.makeLogRecord({"msg": "%s is bad", "args": (text,)})
        return record.getMessage() if limit.filter(record) else None

    assert [passed(text) for text in "abc"] == ["a is bad", None, None]
    now[0] = 61.0
    assert passed("d") == "d is bad (and 2 more like it before)"
    now[0] = 122.0
    assert passed("100%") == "100% is bad"


TLS = Path(__file__).with_name("tls")


class TestServer:
    def test_it_is_not_ready_before_it_is(self) -> None:
        health = Health()
        with serving(health) as url:
            assert fetch(f"{url}/readyz") == (503, "not ready\n")
            health.ready = True
            assert fetch(f"{url}/readyz") == (200, "ready\n")
            health.obstacle = lambda: "no broker answers"
            assert fetch(f"{url}/readyz") == (503, "no broker answers\n")
            assert fetch(f"{url}/healthz") == (200, "ok\n")
            health.trouble = lambda: "the daemon has made no progress for 130 s"
            assert fetch(f"{url}/healthz") == (503, "the daemon has made no progress for 130 s\n")

    def test_it_listens_on_loopback_unless_told_otherwise(self) -> None:
        with serving() as url:
            assert url.startswith("http://127.0.0.1:")
        with serving(host="0.0.0.0") as url:
            port = url.rpartition(":")[2]
            assert fetch(f"http://127.0.0.1:{port}/healthz")[0] == 200

    def test_a_name_and_a_password_are_asked_for(self) -> None:
        with serving(basic_auth={"username": "me", "password": "pässword:1"}) as url:
            for path in ("/", "/metrics", "/api/status", "/elsewhere"):
                assert fetch(url + path)[0] == 401
                assert fetch(url + path, "me:wrong")[0] == 401
                assert fetch(url + path, "you:pässword:1")[0] == 401
            assert fetch(f"{url}/metrics", "me:pässword:1")[0] == 200
            assert fetch(f"{url}/healthz")[0] == 200
            assert fetch(f"{url}/readyz")[0] == 503

    def test_tls(self) -> None:
        settings = {"certificate": str(TLS / "certificate.pem"), "key": str(TLS / "key.pem")}
        context = ssl.create_default_context(cafile=TLS / "certificate.pem")
        with serving(tls=settings) as url:
            assert url.startswith("https://")
            assert fetch(f"{url}/healthz", context=context) == (200, "ok\n")
            with pytest.raises(OSError, match=r"."):  # plain HTTP gets no answer
                urllib.request.urlopen(url.replace("https", "http") + "/healthz", timeout=30)
            assert fetch(f"{url}/healthz", context=context)[0] == 200

    @pytest.mark.parametrize(
        ("certificate", "key", "why"),
        [
            (TLS / "certificate.pem", TLS / "encrypted_key.pem", "the key is encrypted; give one without a passphrase"),
            ("nowhere.pem", "nothing.pem", "No such file"),
        ],
    )
    def test_a_certificate_that_cannot_be_used_is_one_line(self, certificate: Path, key: Path, why: str) -> None:
        tls = {"certificate": str(certificate), "key": str(key)}
        with pytest.raises(ServerError, match=rf"^metrics\.tls: {certificate} and {key} cannot be used: {why}"):
            Server(MetricsConfig(port=0, tls=tls), CollectorRegistry(), Health())
