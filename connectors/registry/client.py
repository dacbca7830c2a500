"""The client of a schema registry: the few requests of Confluent's REST interface that reading and writing need."""

from __future__ import annotations

import base64
import http.client
import socket
import ssl
import time
import urllib.error
import urllib.request
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple
from urllib.parse import quote

import orjson

from streamkernel.connectors.os_reason import os_reason
from streamkernel.connectors.ports import ConnectorError
from streamkernel.connectors.registry.settings import RegistrySettings

__all__ = ["Reference", "RegisteredSchema", "RegistryClient", "RegistryOutage", "UnknownSchemaError"]

MOST_BYTES = 2**22
"""The longest answer, in bytes."""

_CHUNK = 2**16
_LONGEST_WORDS = 300
_MEDIA_TYPE = "application/vnd.schemaregistry.v1+json"
# Too many requests, and a proxy or a registry that gives up for now.
_PASSING = {408, 425, 429}


class RegistryOutage(Exception):
    """The registry does not answer for now; the message is a phrase that says why."""


class UnknownSchemaError(Exception):
    """The registry does not know the schema or the subject, or not yet; the message is its own words."""


class Reference(NamedTuple):
    """What a schema refers to another one by: the name in its text, and the subject and version of that one."""

    name: str
    subject: str
    version: int


class RegisteredSchema(NamedTuple):
    """A schema of a registry: ``"AVRO"``, ``"JSON"`` or ``"PROTOBUF"``, its text and what that refers to."""

    kind: str
    text: str
    references: tuple[Reference, ...] = ()
    number: int = -1


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """Follows no redirect: the credentials would go to whatever host it names."""

    def redirect_request(self, *_: Any) -> None:
        return None


class RegistryClient:
    """A client of the schema registry of some settings; may be used by one thread at a time.

    Every request raises `RegistryOutage` where trying again may help, `UnknownSchemaError` where the registry does not
    know what was asked for, and `ConnectorError` where it refuses.
    """

    def __init__(self, settings: RegistrySettings) -> None:
        self.urls = list(settings.urls)
        self._seconds = settings.timeout_seconds
        self._authorization = _authorization(settings)
        https = urllib.request.HTTPSHandler(context=settings.tls())
        self._opener = urllib.request.build_opener(_NoRedirects, https)
        self._answered = False

    def schema(self, number: int, serialized: bool = False) -> RegisteredSchema:
        """Return the schema of an id; `serialized` asks for a Protobuf one as a base64 file descriptor."""
        return _schema(self._ask("GET", f"/schemas/ids/{number}{_form(serialized)}"), number)

    def version(self, subject: str, version: int | str, serialized: bool = False) -> RegisteredSchema:
        """Return a version of a subject, by its number or ``"latest"``; `serialized` as for `schema`."""
        answer = self._ask("GET", f"/subjects/{quote(subject, safe='')}/versions/{version}{_form(serialized)}")
        return _schema(answer, _number(answer))

    def register(self, subject: str, schema: RegisteredSchema) -> int:
        """Register a schema under a subject, where it is not, and return its id."""
        return _number(self._ask("POST", f"/subjects/{quote(subject, safe='')}/versions", _body(schema)))

    def registered(self, subject: str, schema: RegisteredSchema) -> int:
        """Return the id of a schema that is registered under a subject."""
        return _number(self._ask("POST", f"/subjects/{quote(subject, safe='')}", _body(schema)))

    def known(self, subject: str) -> int | None:
        """Return the number of the latest version of a subject; None where it has none."""
        try:
            answer = self._ask("GET", f"/subjects/{quote(subject, safe='')}/versions/latest")
        except UnknownSchemaError:
            return None
        return int(answer["version"]) if isinstance(answer, Mapping) and "version" in answer else None

    def compatible(self, subject: str, schema: RegisteredSchema) -> bool:
        """Return whether a schema may be registered under a subject that has one, as far as the registry says."""
        try:
            answer = self._ask(
                "POST", f"/compatibility/subjects/{quote(subject, safe='')}/versions/latest", _body(schema)
            )
        except UnknownSchemaError:
            return True
        return not isinstance(answer, Mapping) or answer.get("is_compatible") is not False

    def probe(self) -> str:
        """Return the address of the registry, once it has answered."""
        try:
            self._ask("GET", "/schemas/types")
        except UnknownSchemaError as error:
            raise ConnectorError(
                f"what answers at {self.urls[0]} is not a schema registry ({error}): check url"
            ) from None
        return self.urls[0]

    def _ask(self, method: str, path: str, body: bytes | None = None) -> Any:
        outage = RegistryOutage("no address")
        for _ in self.urls:
            try:
                answer = self._ask_at(self.urls[0], method, path, body)
            except RegistryOutage as error:
                outage = error
                self.urls.append(self.urls.pop(0))
            else:
                self._answered = True
                return answer
        raise outage

    def _ask_at(self, url: str, method: str, path: str, body: bytes | None) -> Any:
        request = urllib.request.Request(
            url + path, body, {"Accept": f"{_MEDIA_TYPE}, application/json"}, method=method
        )
        if body is not None:
            request.add_header("Content-Type", _MEDIA_TYPE)
        if self._authorization is not None:
            request.add_header("Authorization", self._authorization)
        deadline = time.monotonic() + self._seconds
        try:
            with self._opener.open(request, timeout=self._seconds) as answer:
                data = _read(answer, deadline)
        except urllib.error.HTTPError as error:
            with error:
                words = _words(error, deadline)
            self._raise(error.code, f"HTTP {error.code}: {words}" if words else f"HTTP {error.code} {error.reason}")
        except (OSError, http.client.HTTPException) as error:
            raise self._failure(url, error) from None
        try:
            return orjson.loads(data)
        except orjson.JSONDecodeError:
            raise ConnectorError(_no_registry(url)) from None

    def _raise(self, status: int, words: str) -> None:
        if status in (401, 403):
            raise ConnectorError(
                f"the schema registry refuses the credentials ({words}): check username, password and token under "
                "schema_registry"
            )
        if status == 404:
            raise UnknownSchemaError(words)
        if 300 <= status < 400:
            raise ConnectorError(f"the schema registry redirects ({words}): set url to the new address")
        if status >= 500 or status in _PASSING:
            raise RegistryOutage(words)
        raise ConnectorError(f"the schema registry refuses the request ({words})")

    def _failure(self, url: str, error: Exception) -> Exception:
        """Return what a failed connection means: an outage, or what another attempt would not help."""
        reason = error.reason if isinstance(error, urllib.error.URLError) else error
        if isinstance(reason, ssl.SSLCertVerificationError):
            return ConnectorError(
                f"the certificate of {url} is not trusted ({reason.verify_message}): check ssl_cafile and url under "
                "schema_registry"
            )
        if isinstance(reason, ssl.SSLError) and not self._answered:
            return ConnectorError(f"TLS fails at {url} ({reason.reason}): check url and the ssl_ keys")
        unknown = (socket.EAI_NONAME, getattr(socket, "EAI_NODATA", socket.EAI_NONAME))
        if (
            isinstance(reason, socket.gaierror)
            and reason.errno in unknown
            and not self._answered
            and len(self.urls) == 1
        ):
            return ConnectorError(f"the name in {url} cannot be resolved: check url under schema_registry")
        if isinstance(reason, TimeoutError):
            return RegistryOutage(f"no answer within {self._seconds:g} s")
        return RegistryOutage(
            os_reason(reason) if isinstance(reason, OSError) else str(reason) or type(reason).__name__
        )


def _authorization(settings: RegistrySettings) -> str | None:
    if settings.token is not None:
        return f"Bearer {settings.token}"
    if settings.username is None:
        return None
    pair = f"{settings.username}:{settings.password or ''}"
    return f"Basic {base64.b64encode(pair.encode()).decode()}"


def _no_registry(url: str, words: str = "") -> str:
    return f"what answers at {url} is not a schema registry{words}: check url under schema_registry"


def _is_unknown_name(reason: Any) -> bool:
    """Tell whether the name service says that there is no such host; it may also be the one that is away."""
    unknown = (socket.EAI_NONAME, getattr(socket, "EAI_NODATA", socket.EAI_NONAME))
    return isinstance(reason, socket.gaierror) and reason.errno in unknown


def _form(serialized: bool) -> str:
    return "?format=serialized" if serialized else ""


def _body(schema: RegisteredSchema) -> bytes:
    # Registries that know only Avro know no key schemaType either.
    kind = {} if schema.kind == "AVRO" else {"schemaType": schema.kind}
    return orjson.dumps({"schema": schema.text, **kind})


def _read(answer: Any, deadline: float) -> bytes:
    """Read an answer to its end; a registry that sends byte after byte must not hold anybody up for ever."""
    data = bytearray()
    while chunk := answer.read1(_CHUNK):
        data += chunk
        if len(data) > MOST_BYTES:
            raise ConnectorError(f"the answer of the schema registry is longer than {MOST_BYTES:,} bytes")
        if time.monotonic() > deadline:
            raise TimeoutError
    if answer.length:
        raise http.client.IncompleteRead(bytes(data), answer.length)
    return bytes(data)


def _words(error: urllib.error.HTTPError, deadline: float) -> str:
    """Return what the registry says of an error, on one line."""
    try:
        said = orjson.loads(_read(error, deadline))
        text = said["message"]
    except (OSError, http.client.HTTPException, ConnectorError, orjson.JSONDecodeError, LookupError, TypeError):
        return ""
    words = " ".join(str(text).split())
    return words if len(words) <= _LONGEST_WORDS else words[: _LONGEST_WORDS - 3] + "..."


def _schema(answer: Any, number: int) -> RegisteredSchema:
    if not isinstance(answer, Mapping) or not isinstance(answer.get("schema"), str):
        raise ConnectorError("the schema registry answers without a schema: check url under schema_registry")
    kind = answer.get("schemaType") or "AVRO"
    return RegisteredSchema(str(kind), answer["schema"], _references(answer.get("references") or ()), number)


def _references(listed: Sequence[Any]) -> tuple[Reference, ...]:
    try:
        return tuple(Reference(str(one["name"]), str(one["subject"]), int(one["version"])) for one in listed)
    except (LookupError, TypeError, ValueError):
        raise ConnectorError("the schema registry answers with invalid references") from None


def _number(answer: Any) -> int:
    number = answer.get("id") if isinstance(answer, Mapping) else None
    if type(number) is not int or not 0 <= number < 2**32:
        raise ConnectorError("the schema registry answers without the id of the schema: check url")
    return number
