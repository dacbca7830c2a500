"""A client of schema registries: the few requests of Confluent's REST interface that reading and writing need."""

from __future__ import annotations

import base64
import http.client
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

__all__ = ["RegisteredSchema", "RegistryClient", "RegistryOutage", "UnknownSchemaError", "UnusableSchemaError"]

_MOST_BYTES, _MOST_REFERENCES = 2**22, 200
_MEDIA_TYPE = "application/vnd.schemaregistry.v1+json"
_PASSING_STATUS = {408, 425, 429}


class RegistryOutage(Exception):
    """The registry does not answer for now; the message is a phrase with the reason."""


class UnknownSchemaError(Exception):
    """The registry does not know the schema or the subject yet; the message quotes the registry."""


class UnusableSchemaError(Exception):
    """A schema cannot be used; the message is a phrase with the reason."""


class RegisteredSchema(NamedTuple):
    """A schema of a registry: ``"AVRO"``, ``"JSON"`` or ``"PROTOBUF"``, its text and its id.

    A reference is the name of another schema in the text, its subject and its version.
    """

    kind: str
    text: str
    references: tuple[tuple[str, str, int], ...] = ()
    number: int = -1


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

    def schema(self, number: int, serialized: bool = False) -> RegisteredSchema:
        """Return the schema of an id; `serialized` requests a Protobuf one as a base64 file descriptor."""
        return _schema(self._ask(f"/schemas/ids/{number}{_form(serialized)}"), number)

    def version(self, subject: str, version: int | str, serialized: bool = False) -> RegisteredSchema:
        """Return a version of a subject, by its number or ``"latest"``; `serialized` as for `schema`."""
        answer = self._ask(f"{_path(subject)}/versions/{version}{_form(serialized)}")
        return _schema(answer, _number(answer, "id"))

    def texts(self, main: RegisteredSchema, serialized: bool = False) -> dict[str, str]:
        """Return the texts of a schema and of those it refers to, by name; each comes after those it needs.

        The schema itself is the last one, with an empty name. Raises `UnusableSchemaError` for too many references.
        """
        found: dict[str, str] = {}
        asked = 0

        def visit(name: str, schema: RegisteredSchema) -> None:
            nonlocal asked
            for other, subject, version in schema.references:
                if other not in found:
                    asked += 1
                    if asked > _MOST_REFERENCES:
                        raise UnusableSchemaError("its references go round in a circle, or are too many")
                    visit(other, self.version(subject, version, serialized))
            found[name] = schema.text

        visit("", main)
        return found

    def register(self, subject: str, schema: RegisteredSchema) -> int:
        """Register a schema under a subject, if it is new there, and return its id."""
        return _number(self._ask(f"{_path(subject)}/versions", schema), "id")

    def registered(self, subject: str, schema: RegisteredSchema) -> int:
        """Return the id of a schema that is registered under a subject."""
        return _number(self._ask(_path(subject), schema), "id")

    def known(self, subject: str) -> int | None:
        """Return the number of the latest version of a subject; None if it has none."""
        try:
            return _number(self._ask(f"{_path(subject)}/versions/latest"), "version")
        except UnknownSchemaError:
            return None

    def compatible(self, subject: str, schema: RegisteredSchema) -> bool:
        """Return whether a subject's latest schema allows another one."""
        answer = self._ask(f"/compatibility{_path(subject)}/versions/latest", schema)
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
                return self._ask_at(self.urls[0], path, body)
            except RegistryOutage as error:
                outage = error
                self.urls.append(self.urls.pop(0))
        raise outage

    def _ask_at(self, url: str, path: str, body: bytes | None) -> Any:
        request = urllib.request.Request(url + path, body, self._headers)
        try:
            with self._opener.open(request, timeout=self._seconds) as answer:
                data = answer.read(_MOST_BYTES)
                if answer.length:  # reading a limited number of bytes accepts a shorter answer
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
        if isinstance(reason, TimeoutError):
            return RegistryOutage(f"no answer within {self._seconds:g} s")
        return RegistryOutage(
            os_reason(reason) if isinstance(reason, OSError) else str(reason) or type(reason).__name__
        )


def _refusal(error: urllib.error.HTTPError) -> Exception:
    """Return the meaning of an HTTP status."""
    try:
        words = " ".join(str(orjson.loads(error.read(_MOST_BYTES))["message"]).split())[:300]
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


def _path(subject: str) -> str:
    return f"/subjects/{quote(subject, safe='')}"


def _form(serialized: bool) -> str:
    return "?format=serialized" if serialized else ""


def _schema(answer: Any, number: int) -> RegisteredSchema:
    try:
        references = tuple(
            (str(one["name"]), str(one["subject"]), int(one["version"])) for one in answer.get("references") or ()
        )
        return RegisteredSchema(answer.get("schemaType") or "AVRO", str(answer["schema"]), references, number)
    except (AttributeError, LookupError, TypeError, ValueError):
        raise ConnectorError("the schema registry answers without a schema: check url under schema_registry") from None


def _number(answer: Any, key: str) -> int:
    number = answer.get(key) if isinstance(answer, Mapping) else None
    if type(number) is not int or not 0 <= number < 2**32:
        raise ConnectorError(f"the schema registry answers without the {key} of the schema: check url")
    return number
