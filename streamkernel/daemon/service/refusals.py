"""Requests that are refused, and what is answered."""

from __future__ import annotations

from collections.abc import Mapping
from http import HTTPStatus

from streamkernel.connectors.encode import to_json
from streamkernel.connectors.ports import Fault
from streamkernel.daemon.monitoring.dead_letter_advice import remedy
from streamkernel.daemon.serving.endpoint import Answer

__all__ = ["RefusedError", "fault_answer", "fault_status"]

# Of the others, the detail says what to send instead.
_SETTINGS = frozenset({"infinite", "nested", "string_too_long", "too_long"})


class RefusedError(Exception):
    """A request that is not answered; the message says why, the reason is a short code.

    Attributes
    ----------
    answer
        What is answered instead.

    """

    def __init__(self, status: HTTPStatus, reason: str, detail: str, retry_after: int | None = None) -> None:
        super().__init__(detail)
        headers: Mapping[str, str] = {} if retry_after is None else {"Retry-After": str(retry_after)}
        self.answer = Answer(status, to_json(fault_answer(Fault(reason, detail))), headers)


def fault_answer(fault: Fault, section: str = "source") -> dict[str, dict[str, str]]:
    """Return what is answered for a record that cannot be used, with the remedy where a setting is one.

    Parameters
    ----------
    fault
        Why it cannot.
    section
        The section of the source that reads such records.

    Examples
    --------
    >>> fault_answer(Fault("not_an_object", "a list, not an object"))
    {'error': {'reason': 'not_an_object', 'detail': 'a list, not an object'}}
    >>> fault_answer(Fault("string_too_long", "300 characters"))["error"]["remedy"]
    'raise limits.max_string'

    """
    error = {"reason": fault.reason, "detail": fault.detail}
    if fault.reason in _SETTINGS:
        error["remedy"] = remedy(fault.reason, section, "journal")
    return {"error": error}


def fault_status(fault: Fault) -> HTTPStatus:
    """Return the status of a request whose only record cannot be used."""
    if fault.reason in ("not_json", "not_an_object", "encoding"):
        return HTTPStatus.BAD_REQUEST
    return HTTPStatus.REQUEST_ENTITY_TOO_LARGE if fault.reason == "too_long" else HTTPStatus.UNPROCESSABLE_ENTITY
