"""The HTTP endpoint: probes, the status page, TLS and passwords, a clear error where it cannot be served."""

from __future__ import annotations

import ssl
import urllib.error
import urllib.request
from pathlib import Path

import pytest
from prometheus_client import CollectorRegistry

from streamkernel.daemon.base.health import Health
from streamkernel.daemon.config.schema import MetricsConfig
from streamkernel.daemon.monitoring.server import Server, ServerError
from tests.daemon.endpoint import get, serving

TLS = Path(__file__).with_name("tls")


class TestServer:
    def test_it_is_not_ready_before_it_is(self) -> None:
        health = Health()
        with serving(health) as url:
            assert get(f"{url}/readyz") == (503, "not ready\n")
            health.ready = True
            assert get(f"{url}/readyz") == (200, "ready\n")
            health.obstacle = lambda: "no broker answers"
            assert get(f"{url}/readyz") == (503, "no broker answers\n")
            assert get(f"{url}/healthz") == (200, "ok\n")
            health.trouble = lambda: "the loop has not turned for 130 s"
            assert get(f"{url}/healthz") == (503, "the loop has not turned for 130 s\n")

    def test_it_listens_on_loopback_unless_told_otherwise(self) -> None:
        with serving() as url:
            assert url.startswith("http://127.0.0.1:")
        with serving(host="0.0.0.0") as url:
            port = url.rpartition(":")[2]
            assert get(f"http://127.0.0.1:{port}/healthz")[0] == 200

    def test_a_name_and_a_password_are_asked_for(self) -> None:
        with serving(basic_auth={"username": "me", "password": "pässword:1"}) as url:
            for path in ("/", "/metrics", "/api/status", "/elsewhere"):
                assert get(url + path)[0] == 401
                assert get(url + path, "me:wrong")[0] == 401
                assert get(url + path, "you:pässword:1")[0] == 401
            assert get(f"{url}/metrics", "me:pässword:1")[0] == 200
            assert get(f"{url}/healthz")[0] == 200
            assert get(f"{url}/readyz")[0] == 503

    def test_tls(self) -> None:
        settings = {"certificate": str(TLS / "certificate.pem"), "key": str(TLS / "key.pem")}
        context = ssl.create_default_context(cafile=TLS / "certificate.pem")
        with serving(tls=settings) as url:
            assert url.startswith("https://")
            assert get(f"{url}/healthz", context=context) == (200, "ok\n")
            with pytest.raises(OSError, match=r"."):  # plain HTTP gets no answer
                urllib.request.urlopen(url.replace("https", "http") + "/healthz", timeout=30)
            assert get(f"{url}/healthz", context=context)[0] == 200

    def test_an_encrypted_key_is_one_line(self) -> None:
        tls = {"certificate": str(TLS / "certificate.pem"), "key": str(TLS / "encrypted_key.pem")}
        with pytest.raises(ServerError, match=r"cannot be used: the key is encrypted; give one without a passphrase"):
            Server(MetricsConfig(port=0, tls=tls), CollectorRegistry(), Health())

    @pytest.mark.parametrize("host", ["nowhere.invalid", "192.0.2.1"])
    def test_a_host_that_is_not_this_machine_is_one_line(self, host: str) -> None:
        with pytest.raises(ServerError, match=r"; set metrics\.host to a name or an address of this machine$"):
            Server(MetricsConfig(port=0, host=host), CollectorRegistry(), Health())

    def test_a_certificate_that_cannot_be_used_is_one_line(self) -> None:
        with pytest.raises(
            ServerError, match=r"metrics\.tls: nowhere\.pem and nothing\.pem cannot be used: No such file"
        ):
            Server(
                MetricsConfig(port=0, tls={"certificate": "nowhere.pem", "key": "nothing.pem"}),
                CollectorRegistry(),
                Health(),
            )
