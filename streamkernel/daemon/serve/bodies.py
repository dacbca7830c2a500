"""The body of a request as records, and the answers to requests and records that cannot be used."""

from __future__ import annotations

import json
import re
from codecs import BOM_UTF8
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any, NamedTuple

from starlette.responses import Response

from streamkernel.connectors.encode import to_json
from streamkernel.connectors.ports import Fault
from streamkernel.daemon.monitoring.dead_letters import remedy

__all__ = ["Records", "RefusedError", "fault_answer", "fault_status", "json_response", "split"]

_BLANK = re.compile(r"[ \t\n\r]*")
_MEDIA_TYPE = "application/json"
# Of the others, the detail says what to send instead.
_SETTINGS = frozenset({"infinite", "nested", "string_too_long", "too_long"})


def json_response(status: HTTPStatus, answer: Any, headers: Mapping[str, str] | None = None) -> Response:
    """Return a response of JSON; numbers that JSON lacks are null."""
    return Response(to_json(answer), status, headers, "application/json")


class RefusedError(Exception):
    """A refused request; the message says why.

    Attributes
    ----------
    answer
        The response.

    """

    def __init__(self, status: HTTPStatus, reason: str, detail: str, retry_after: int | None = None) -> None:
        super().__init__(detail)
        headers = None if retry_after is None else {"Retry-After": str(retry_after)}
        self.answer = json_response(status, fault_answer(Fault(reason, detail)), headers)


def fault_answer(fault: Fault, section: str = "source") -> dict[str, dict[str, str]]:
    """Return the answer for an unusable record, with the remedy where a setting is one.

    Parameters
    ----------
    fault
        Why the record cannot be used.
    section
        The section of the source that reads the record.

    Examples
    --------
    >>> fault_answer(Fault("not_an_object", "a list, not an object"))
    {'error': {'reason': 'not_an_object', 'detail': 'a list, not an object'}}
    >>> fault_answer(Fault("string_too_long", "300 characters"))["error"]["remedy"]
    'raise limits.max_string'

    """
    error = {"reason": fault.reason, "detail": fault.detail}
    if fault.reason in _SETTINGS:
        error["remedy"] = remedy(fault, section, "journal")
    return {"error": error}


def fault_status(fault: Fault) -> HTTPStatus:
    """Return the status of a request with one unusable record."""
    if fault.reason in ("not_json", "not_an_object", "encoding"):
        return HTTPStatus.BAD_REQUEST
    return HTTPStatus.REQUEST_ENTITY_TOO_LARGE if fault.reason == "too_long" else HTTPStatus.UNPROCESSABLE_ENTITY


class Records(NamedTuple):
    """The records of a request.

    Attributes
    ----------
    raws
        The bytes of each.
    many
        Whether they came in an array, so that the answer is one.

    """

    raws: list[bytes]
    many: bool


def _nothing(digits: str) -> None:
    """Replace a number: it is read later, by the rules of its column."""


# With C's scanner, which says where each value ends.
_DECODER = json.JSONDecoder(parse_int=_nothing, parse_float=_nothing, parse_constant=_nothing)


def split(body: bytes, headers: Mapping[str, str], most: int) -> Records:
    """Return the records of a body, which are decoded later.

    Parameters
    ----------
    body, headers
        The body and the header fields of the request.
    most
        The most records.

    Raises
    ------
    RefusedError
        Where the body is no JSON, or has too many records.

    Examples
    --------
    >>> json_type = {"content-type": "application/json"}
    >>> split(b'{"a": 1}', json_type, 10)
    Records(raws=[b'{"a": 1}'], many=False)
    >>> split(b'[{"a": 1e400}, 7]', json_type, 10)
    Records(raws=[b'{"a": 1e400}', b'7'], many=True)

    """
    if headers.get("content-type", "").partition(";")[0].strip().lower() != _MEDIA_TYPE:
        # A page of another site may send text without being asked, but no JSON.
        raise RefusedError(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, "media_type", f"Content-Type must be {_MEDIA_TYPE}")
    if headers.get("content-encoding", "identity").lower() != "identity":
        raise RefusedError(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, "media_type", "a body must not be compressed")
    stripped = body.removeprefix(BOM_UTF8).strip(b" \t\n\r")
    if not stripped.startswith(b"["):
        return Records([stripped], many=False)
    try:
        text = stripped.decode()
    except UnicodeDecodeError as error:
        detail = f"byte {stripped[error.start]:#04x} at {error.start} is not UTF-8"
        raise RefusedError(HTTPStatus.BAD_REQUEST, "encoding", detail) from None
    try:
        return Records(_elements(text, most), many=True)
    except (ValueError, RecursionError):
        raise RefusedError(HTTPStatus.BAD_REQUEST, "not_json", "the array is not JSON, or nested too deeply") from None


def _elements(text: str, most: int) -> list[bytes]:
    """Return the elements of an array as they are there; ValueError where it is not JSON."""
    raws: list[bytes] = []
    at = _after_blank(text, 1)
    while text[at : at + 1] != "]" or raws:
        if len(raws) == most:
            detail = f"a request may have {most:,} records (serve.max_records)"
            raise RefusedError(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, "too_many", detail)
        _, end = _DECODER.raw_decode(text, at)
        raws.append(text[at:end].encode())
        at = _after_blank(text, end)
        if text[at : at + 1] == "]":
            break
        if text[at : at + 1] != ",":
            raise ValueError(at)
        at = _after_blank(text, at + 1)
    if at + 1 != len(text):
        raise ValueError(at)
    return raws


def _after_blank(text: str, at: int) -> int:
    match = _BLANK.match(text, at)
    assert match is not None
    return match.end()
