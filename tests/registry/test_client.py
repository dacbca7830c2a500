"""The client of a schema registry: what it asks, what an answer means, and which answers it does not take."""

from __future__ import annotations

import socket
from collections.abc import Callable
from pathlib import Path

import pytest

from streamkernel.connectors.ports import ConnectorError
from streamkernel.connectors.registry.client import (
    RegisteredSchema,
    RegistryClient,
    RegistryOutage,
    UnknownSchemaError,
)
from streamkernel.connectors.registry.settings import RegistrySettings
from tests.ports import closed_port
from tests.registry.server import RegistryServer

TLS = Path(__file__).parents[1] / "daemon" / "tls"


def client(registry: RegistryServer, **settings: object) -> RegistryClient:
    return RegistryClient(RegistrySettings(registry.url, **settings))  # type: ignore[arg-type]


class TestRequests:
    def test_a_schema_by_its_id_with_what_it_refers_to(self, registry: RegistryServer) -> None:
        registry.add('"string"', references=[{"name": "n", "subject": "other", "version": 2}])
        found = client(registry).schema(1)
        assert found == RegisteredSchema("AVRO", '"string"', (("n", "other", 2),), 1)

    def test_what_is_registered_is_found(self, registry: RegistryServer) -> None:
        asked = client(registry)
        schema = RegisteredSchema("JSON", "{}")
        assert asked.known("a/b ä") is None
        with pytest.raises(UnknownSchemaError, match="HTTP 404: Schema not found"):
            asked.registered("a/b ä", schema)
        number = asked.register("a/b ä", schema)
        assert asked.register("a/b ä", schema) == asked.registered("a/b ä", schema) == number
        assert asked.version("a/b ä", "latest") == asked.version("a/b ä", 1) == schema._replace(number=number)
        assert asked.known("a/b ä") == 1
        assert "/subjects/a%2Fb%20%C3%A4/versions" in registry.requests[-1][1]

    @pytest.mark.parametrize(
        ("settings", "header"),
        [
            ({"username": "me", "password": "pässword"}, "Basic bWU6cMOkc3N3b3Jk"),
            ({"token": "abc"}, "Bearer abc"),
        ],
    )
    def test_credentials(self, registry: RegistryServer, settings: dict[str, str], header: str) -> None:
        registry.authorization = header
        assert client(registry, **settings).probe() == registry.url
        with pytest.raises(ConnectorError, match=r"HTTP 401: Unauthorized.*username"):
            client(registry).probe()

    def test_tls_by_the_authority_that_is_named(self) -> None:
        with RegistryServer((TLS / "certificate.pem", TLS / "key.pem")) as registry:
            url = registry.url.replace("127.0.0.1", "localhost")
            trusting = RegistrySettings(url, ssl_cafile=str(TLS / "certificate.pem"))
            assert RegistryClient(trusting).probe() == url
            with pytest.raises(ConnectorError, match=r"certificate .*not trusted .*ssl_cafile"):
                RegistryClient(RegistrySettings(url)).probe()

    @pytest.mark.parametrize("name", ["ssl_cafile", "ssl_certfile"])
    def test_files_of_tls_that_cannot_be_used(self, tmp_path: Path, name: str) -> None:
        with pytest.raises(ValueError, match=f"schema_registry.{name}: .*No such file"):
            RegistryClient(RegistrySettings("https://a", **{name: str(tmp_path / "none")}))  # type: ignore[arg-type]
        (tmp_path / "bad").write_text("no PEM")
        with pytest.raises(ValueError, match=f"schema_registry.{name}: .*: is not a usable PEM"):
            RegistryClient(RegistrySettings("https://a", **{name: str(tmp_path / "bad")}))  # type: ignore[arg-type]


class TestAnswers:
    @pytest.mark.parametrize("status", [408, 429, 500, 502, 503, 504])
    def test_what_may_pass(self, registry: RegistryServer, status: int) -> None:
        registry.answer = status, b'{"message": "not\\nnow"}'
        with pytest.raises(RegistryOutage, match=f"HTTP {status}: not now"):
            client(registry).schema(1)

    @pytest.mark.parametrize(
        ("status", "body", "said"),
        [
            (403, b"", "refuses the credentials .HTTP 403 Forbidden."),
            (409, b'{"message": "incompatible"}', "refuses the request .HTTP 409: incompatible."),
            (422, b"[" * 5000, "refuses the request .HTTP 422"),
            (301, b"", r"redirects .HTTP 301.*: set url"),
            (200, b"<html>", "is not a schema registry: check url"),
            (200, b"[" * 5000, "is not a schema registry: check url"),
            (200, b"[]", "answers without a schema"),
            (200, b'{"schema": "", "references": [1]}', "answers without a schema"),
        ],
    )
    def test_what_will_not(self, registry: RegistryServer, status: int, body: bytes, said: str) -> None:
        registry.answer = status, body
        with pytest.raises(ConnectorError, match=said):
            client(registry).schema(1)

    def test_credentials_do_not_follow_a_redirect(self, registry: RegistryServer) -> None:
        with RegistryServer() as thief:
            registry.answer, registry.location = (302, b""), thief.url + "/schemas/types"
            with pytest.raises(ConnectorError, match=r"redirects .HTTP 302"):
                client(registry, token="abc").probe()
            assert thief.requests == []

    def test_another_server_than_a_registry(self, registry: RegistryServer) -> None:
        registry.answer = 404, b"<html>nothing here</html>"
        with pytest.raises(ConnectorError, match=r"HTTP 404 Not Found.* url"):
            client(registry).probe()


class TestConnections:
    def test_the_next_address_answers(self, registry: RegistryServer) -> None:
        with socket.socket() as held:
            asked = RegistryClient(RegistrySettings(f"http://127.0.0.1:{closed_port(held)}, {registry.url}/"))
            assert asked.probe() == registry.url

    def test_an_address_that_breaks_off(self, cut_off: str) -> None:
        with pytest.raises(RegistryOutage):
            RegistryClient(RegistrySettings(cut_off)).schema(1)


@pytest.fixture
def cut_off(serving: Callable[[bytes], str]) -> str:
    """A server that promises more than it sends."""
    return serving(b"HTTP/1.1 200 OK\r\nContent-Length: 500\r\n\r\n{")
