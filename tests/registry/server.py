"""A schema registry in this process: the REST interface of Confluent's as far as it is used, and ill at a word."""

from __future__ import annotations

import base64
import json
import ssl
import threading
import time
from collections.abc import Mapping, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import TracebackType
from typing import Any, Self
from urllib.parse import parse_qs, unquote, urlsplit

from streamkernel.connectors.registry.settings import RegistrySettings

Answer = tuple[int, Any]


class RegistryServer:
    """A registry on a free port, for as long as the context manager is entered.

    Attributes
    ----------
    answer
        What every request is answered with, as status and body; None: what it asks for.
    serialized
        By the text of a Protobuf schema, the base64 of its descriptor: the server cannot read the text.
    knows_serialized
        Whether it gives that where it is asked to; Apicurio's does not.
    compatible
        Whether it takes another schema where a subject has one.
    authorization
        The header that is wanted; None: any.
    requests
        Method, path and headers of all requests.
    drip
        Seconds between two bytes of an answer.

    """

    def __init__(self, tls: tuple[Path, Path] | None = None) -> None:
        self.answer: tuple[int, bytes] | None = None
        self.serialized: dict[str, str] = {}
        self.knows_serialized = True
        self.compatible = True
        self.authorization: str | None = None
        self.requests: list[tuple[str, str, dict[str, str]]] = []
        self.drip = 0.0
        self.location: str | None = None
        self.schemas: dict[int, dict[str, Any]] = {}
        self.subjects: dict[str, list[int]] = {}
        self._httpd = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self._httpd.daemon_threads = True
        self._secure = tls is not None
        if tls is not None:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(*tls)
            self._httpd.socket = context.wrap_socket(self._httpd.socket, server_side=True)
        self._thread = threading.Thread(target=self._httpd.serve_forever, args=(0.01,), daemon=True)

    @property
    def url(self) -> str:
        return f"http{'s' if self._secure else ''}://127.0.0.1:{self._httpd.server_address[1]}"

    def settings(self, **more: Any) -> RegistrySettings:
        """Settings of a source or sink that asks this registry."""
        return RegistrySettings(self.url, **more)

    def add(
        self,
        schema: Any,
        kind: str = "AVRO",
        subject: str = "t-value",
        references: Sequence[Mapping[str, Any]] = (),
        number: int | None = None,
    ) -> int:
        """Register a schema, of text or as a tree, and return its id."""
        text = schema if isinstance(schema, str) else json.dumps(schema)
        entry = {"schema": text, "schemaType": kind, "references": list(references)}
        known = [one for one, other in self.schemas.items() if other == entry]
        number = known[0] if known else number or len(self.schemas) + 1
        self.schemas[number] = entry
        versions = self.subjects.setdefault(subject, [])
        if number not in versions:
            versions.append(number)
        return number

    def reply(self, method: str, path: str, body: bytes) -> Answer:
        address = urlsplit(path)
        parts = [unquote(part) for part in address.path.strip("/").split("/")]
        serialized = parse_qs(address.query).get("format") == ["serialized"]
        if parts == ["schemas", "types"]:
            return 200, ["JSON", "PROTOBUF", "AVRO"]
        if parts[:2] == ["schemas", "ids"]:
            return self._given(int(parts[2]), serialized)
        if parts[0] == "compatibility":
            return 200, {"is_compatible": self.compatible}
        subject, versions = parts[1], self.subjects.get(parts[1], [])
        if method == "POST":
            return self._posted(subject, json.loads(body), registers=parts[2:] == ["versions"])
        if not versions or (parts[3] != "latest" and int(parts[3]) > len(versions)):
            return 404, {"error_code": 40401, "message": f"Subject '{subject}' not found."}
        version = len(versions) if parts[3] == "latest" else int(parts[3])
        number = versions[version - 1]
        status, said = self._given(number, serialized)
        return status, {**said, "subject": subject, "version": version, "id": number}

    def _given(self, number: int, serialized: bool) -> Answer:
        if number not in self.schemas:
            return 404, {"error_code": 40403, "message": f"Schema {number} not found"}
        entry = dict(self.schemas[number])
        if serialized and self.knows_serialized and entry["schemaType"] == "PROTOBUF":
            entry["schema"] = self.serialized.get(entry["schema"], entry["schema"])
        if entry["schemaType"] == "AVRO":
            del entry["schemaType"]
        return 200, entry

    def _posted(self, subject: str, said: dict[str, Any], registers: bool) -> Answer:
        entry = {"schema": said["schema"], "schemaType": said.get("schemaType", "AVRO"), "references": []}
        if registers:
            return 200, {"id": self.add(entry["schema"], entry["schemaType"], subject)}
        for number in self.subjects.get(subject, []):
            if self.schemas[number] == entry:
                return 200, {"id": number, "subject": subject, "version": 1}
        return 404, {"error_code": 40403, "message": "Schema not found"}

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._httpd.shutdown()
        self._httpd.server_close()
        self._thread.join()


def _handler(registry: RegistryServer) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            registry.requests.append((self.command, self.path, dict(self.headers)))
            status, said = self._answer(body)
            data = said if isinstance(said, bytes) else json.dumps(said).encode()
            self.send_response(status)
            if registry.location is not None:
                self.send_header("Location", registry.location)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            try:
                for place in range(0, len(data), 1 if registry.drip else max(1, len(data))):
                    self.wfile.write(data[place : place + 1] if registry.drip else data)
                    if registry.drip:
                        time.sleep(registry.drip)
            except OSError:
                pass  # it does not want the rest

        do_POST = do_GET

        def _answer(self, body: bytes) -> Answer:
            if registry.answer is not None:
                return registry.answer
            wanted = registry.authorization
            if wanted is not None and self.headers.get("Authorization") != wanted:
                return 401, {"error_code": 401, "message": "Unauthorized"}
            return registry.reply(self.command, self.path, body)

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    return Handler


def base64_descriptor(file: Any) -> str:
    """Give the descriptor of a Protobuf file as a registry gives it in the form ``serialized``."""
    return base64.b64encode(file.SerializeToString()).decode()
