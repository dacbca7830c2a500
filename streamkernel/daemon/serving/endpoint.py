"""An endpoint besides metrics and probes, as whoever adds it describes it; nothing here needs the HTTP libraries."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field

__all__ = ["Answer", "Endpoint", "Question"]

_JSON = "application/json"


@dataclass(frozen=True, slots=True)
class Question:
    """A request: its body, and its header fields by names of any case, the first of a name."""

    body: bytes
    headers: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Answer:
    """A response, JSON unless it says otherwise."""

    status: int
    body: bytes
    headers: Mapping[str, str] = field(default_factory=dict)
    media_type: str = _JSON


@dataclass(frozen=True)
class Endpoint:
    """A path, the one method that it takes besides HEAD for GET, and what answers."""

    path: str
    method: str
    answer: Callable[[Question], Awaitable[Answer]]
