"""A client of schema registries: the few requests of Confluent's REST interface that reading and writing need."""

from __future__ import annotations

import base64
import http.client
import socket
import ssl
import urllib.error
import urllib.request
from collections.abc import Mapping
from typing import Any, NamedTuple
from urllib.parse import quote

import orjson

from streamkernel.connectors.os_reason import os_reason
from streamkernel.connectors.ports import ConnectorError
from streamkernel.connectors.registry.settings import RegistrySettings

__all__ = [
    "Reference",
    "RegisteredSchema",
    "RegistryClient",
    "RegistryOutage",
    "SchemaSet",
    "UnknownSchemaError",
    "UnusableSchemaError",
]

MOST_BYTES = 2**22
"""The maximum length of an answer, in bytes."""

_MOST_REFERENCES, _DEEPEST_REFERENCE = 200, 20
_MEDIA_TYPE = "application/vnd.schemaregistry.v1+json"
_PASSING_STATUS = {408, 425, 429}


class RegistryOutage(Exception):
    """The registry does not answer for now; the message is a phrase with the reason."""


class UnknownSchemaError(Exception):
    """The registry does not know the schema or the subject yet; the message quotes the registry."""


class UnusableSchemaError(Exception):
    """A schema cannot be used; the message is a phrase with the reason."""


class Reference(NamedTuple):
    """A reference to another schema: its name in the text, and its subject and version."""

    name: str
    subject: str
    version: int


class RegisteredSchema(NamedTuple):
    """A schema of a registry: ``"AVRO"``, ``"JSON"`` or ``"PROTOBUF"``, its text, its references and its id."""

    kind: str
    text: str
    references: tuple[Reference, ...] = ()
    number: int = -1


class SchemaSet(NamedTuple):
    """A schema and all those it refers to, by name: each comes after those it needs itself."""

    main: RegisteredSchema
    references: dict[str, RegisteredSchema]

    @property
    def texts(self) -> list[str]:
        """The texts of all schemas, the main one last."""
        return [one.text for one in (*self.references.values(), self.main)]


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """Follows no redirect: the credentials would go to whatever host it names."""

    def redirect_request(self, *_: Any) -> None:
        return None


class RegistryClient:
    """A client of the schema registry of some settings; for one thread at a time.

    Every request raises `RegistryOutage` if a later attempt may succeed, `UnknownSchemaError` if the registry does not
    know the schema, and `ConnectorError` if the registry refuses.
    """

    def __init__(self, settings: RegistrySettings) -> None:
        self.urls = list(settings.urls)
        self._seconds = settings.timeout_seconds
        self._headers = {"Accept": f"{_MEDIA_TYPE}, application/json", "Content-Type": _MEDIA_TYPE}
        if settings.token is not None:
            self._headers["Authorization"] = f"Bearer {settings.token}"
        elif settings.username is not None:
            pair = f"{settings.username}:{settings.password or ''}"
            self._headers["Authorization"] = f"Basic {base64.b64encode(pair.encode()).decode()}"
        https = urllib.request.HTTPSHandler(context=settings.tls())
        self._opener = urllib.request.build_opener(_NoRedirects, https)
        self._answered = False

    def schema(self, number: int, serialized: bool = False) -> RegisteredSchema:
        """Return the schema of an id; `serialized` requests a Protobuf one as a base64 file descriptor."""
        return _schema(self._ask(f"/schemas/ids/{number}{_form(serialized)}"), number)

    def version(self, subject: str, version: int | str, serialized: bool = False) -> RegisteredSchema:
        """Return a version of a subject, by its number or ``"latest"``; `serialized` as for `schema`."""
        answer = self._ask(f"/subjects/{quote(subject, safe='')}/versions/{version}{_form(serialized)}")
        return _schema(answer, _number(answer, "id"))

    def with_references(self, main: RegisteredSchema, serialized: bool = False) -> SchemaSet:
        """Return a schema with all those it refers to; raises `UnusableSchemaError` for too many or a circle."""
        found: dict[str, RegisteredSchema] = {}

        def visit(schema: RegisteredSchema, depth: int) -> None:
            for name, subject, version in schema.references:
                if name in found:
                    continue
                if depth >= _DEEPEST_REFERENCE or len(found) >= _MOST_REFERENCES:
                    raise UnusableSchemaError("its references go round in a circle, or are too many")
                one = self.version(subject, version, serialized)
                visit(one, depth + 1)
                found[name] = one

        visit(main, 0)
        return SchemaSet(main, found)

    def register(self, subject: str, schema: RegisteredSchema) -> int:
        """Register a schema under a subject, if it is new there, and return its id."""
        return _number(self._ask(f"/subjects/{quote(subject, safe='')}/versions", schema), "id")

    def registered(self, subject: str, schema: RegisteredSchema) -> int:
        """Return the id of a schema that is registered under a subject."""
        return _number(self._ask(f"/subjects/{quote(subject, safe='')}", schema), "id")

    def known(self, subject: str) -> int | None:
        """Return the number of the latest version of a subject; None if it has none."""
        try:
            return _number(self._ask(f"/subjects/{quote(subject, safe='')}/versions/latest"), "version")
        except UnknownSchemaError:
            return None

    def compatible(self, subject: str, schema: RegisteredSchema) -> bool:
        """Return whether a subject's latest schema allows another one."""
        try:
            answer = self._ask(f"/compatibility/subjects/{quote(subject, safe='')}/versions/latest", schema)
        except UnknownSchemaError:
            return True
        return not isinstance(answer, Mapping) or answer.get("is_compatible") is not False

    def probe(self) -> str:
        """Return the address of the registry, once it has answered."""
        try:
            self._ask("/schemas/types")
        except UnknownSchemaError as error:
            raise ConnectorError(_no_registry(self.urls[0], f" ({error})")) from None
        return self.urls[0]

    def _ask(self, path: str, schema: RegisteredSchema | None = None) -> Any:
        """Ask the first address that answers: POST a schema, GET otherwise."""
        body = None
        if schema is not None:
            # Registries for Avro alone do not know the key schemaType.
            kind = {} if schema.kind == "AVRO" else {"schemaType": schema.kind}
            body = orjson.dumps({"schema": schema.text, **kind})
        outage = RegistryOutage("no address")
        for _ in self.urls:
            try:
                answer = self._ask_at(self.urls[0], path, body)
            except RegistryOutage as error:
                outage = error
                self.urls.append(self.urls.pop(0))
            else:
                self._answered = True
                return answer
        raise outage

    def _ask_at(self, url: str, path: str, body: bytes | None) -> Any:
        request = urllib.request.Request(url + path, body, self._headers)
        try:
            with self._opener.open(request, timeout=self._seconds) as answer:
                data = answer.read(MOST_BYTES)
            if len(data) == MOST_BYTES:
                raise ConnectorError(f"the answer of the schema registry is longer than {MOST_BYTES:,} bytes")
            if answer.length:
                raise http.client.IncompleteRead(data, answer.length)
            return orjson.loads(data)
        except urllib.error.HTTPError as error:
            with error:
                raise _refusal(error) from None
        except orjson.JSONDecodeError:
            raise ConnectorError(_no_registry(url)) from None
        except (OSError, http.client.HTTPException) as error:
            raise self._failure(url, error) from None

    def _failure(self, url: str, error: Exception) -> Exception:
        """Return the meaning of a failed connection: an outage, or a setting that another attempt would not mend."""
        reason = error.reason if isinstance(error, urllib.error.URLError) else error
        if isinstance(reason, ssl.SSLCertVerificationError):
            return ConnectorError(
                f"the certificate of {url} is not trusted ({reason.verify_message}): check ssl_cafile and url under "
                "schema_registry"
            )
        if not self._answered and isinstance(reason, ssl.SSLError):
            return ConnectorError(f"TLS fails at {url} ({reason.reason}): check url and the ssl_ keys")
        if not self._answered and isinstance(reason, socket.gaierror) and reason.errno == socket.EAI_NONAME:
            return ConnectorError(f"the name in {url} cannot be resolved: check url under schema_registry")
        if isinstance(reason, TimeoutError):
            return RegistryOutage(f"no answer within {self._seconds:g} s")
        return RegistryOutage(
            os_reason(reason) if isinstance(reason, OSError) else str(reason) or type(reason).__name__
        )


def _refusal(error: urllib.error.HTTPError) -> Exception:
    """Return the meaning of an HTTP status."""
    try:
        words = " ".join(str(orjson.loads(error.read(MOST_BYTES))["message"]).split())[:300]
    except (OSError, http.client.HTTPException, orjson.JSONDecodeError, LookupError, TypeError):
        words = ""
    words = f"HTTP {error.code}: {words}" if words else f"HTTP {error.code} {error.reason}"
    if error.code in (401, 403):
        return ConnectorError(
            f"the schema registry refuses the credentials ({words}): check username, password and token under "
            "schema_registry"
        )
    if error.code == 404:
        return UnknownSchemaError(words)
    if 300 <= error.code < 400:
        return ConnectorError(f"the schema registry redirects ({words}): set url to the new address")
    if error.code >= 500 or error.code in _PASSING_STATUS:
        return RegistryOutage(words)
    return ConnectorError(f"the schema registry refuses the request ({words})")


def _no_registry(url: str, words: str = "") -> str:
    return f"the server at {url} is not a schema registry{words}: check url under schema_registry"


def _form(serialized: bool) -> str:
    return "?format=serialized" if serialized else ""


def _schema(answer: Any, number: int) -> RegisteredSchema:
    try:
        references = tuple(
            Reference(str(one["name"]), str(one["subject"]), int(one["version"]))
            for one in answer.get("references") or ()
        )
        return RegisteredSchema(answer.get("schemaType") or "AVRO", str(answer["schema"]), references, number)
    except (AttributeError, LookupError, TypeError, ValueError):
        raise ConnectorError("the schema registry answers without a schema: check url under schema_registry") from None


def _number(answer: Any, key: str) -> int:
    number = answer.get(key) if isinstance(answer, Mapping) else None
    if type(number) is not int or not 0 <= number < 2**32:
        raise ConnectorError(f"the schema registry answers without the {key} of the schema: check url")
    return number
