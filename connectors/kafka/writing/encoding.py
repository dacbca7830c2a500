"""Encodes lines; lines wait in memory while a schema registry does not answer."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

from streamkernel.connectors.encode import to_json
from streamkernel.connectors.kafka.writing.copying import Copier
from streamkernel.connectors.kafka.writing.line import Line
from streamkernel.connectors.ports import Position, SinkError
from streamkernel.connectors.registry.writing import LineEncoder

__all__ = ["EncodingQueue", "Shorten"]

Shorten: TypeAlias = Callable[[Mapping[str, Any], int], Mapping[str, Any]]
"""Makes a line that takes at most a given number of bytes as JSON."""


class EncodingQueue:
    """Encodes the lines of a sink in order: as JSON at once, or by an encoder as soon as that is ready.

    `bytes` is how much memory the waiting lines take, about; `failed` says that they can never be encoded. `shorten`
    makes lines shorter that are too long; `copier` copies from the message of a line's record.
    """

    def __init__(self, encoder: LineEncoder | None, shorten: Shorten | None, copier: Copier) -> None:
        self.bytes = 0
        self.failed = False
        self._encoder = encoder
        self._encode = to_json if encoder is None else encoder.encode
        self._shorten = shorten
        self._copier = copier
        self._waiting: list[tuple[Mapping[str, Any], Position]] = []

    def __len__(self) -> int:
        return len(self._waiting)

    @property
    def unfinished(self) -> bool:
        """Whether lines wait that may still be encoded."""
        return not self.failed and bool(self._waiting)

    def encoded(self, lines: Sequence[Mapping[str, Any]], positions: Sequence[Position], most: int) -> list[Line]:
        """Return all lines that can be encoded now, those that waited first, each of at most `most` bytes.

        Raises `SinkError` where the registry refuses, or a line does not fit its schema.
        """
        self._waiting += list(zip(lines, positions, strict=True))
        try:
            if self._waiting and self._encoder is not None and not self._encoder.ready:
                self.bytes += sum(map(self._size, lines, positions))
                return []
            encoded = [self._line(line, place, most) for line, place in self._waiting]
        except SinkError:
            self.failed = True
            raise
        self._waiting.clear()
        self.bytes = 0
        return encoded

    def _line(self, line: Mapping[str, Any], place: Position, most: int) -> Line:
        value = self._encode(line)
        if len(value) > most and self._shorten is not None:
            value = self._encode(self._shorten(line, most))
        return Line(value, place, self._copier(line))

    def _size(self, line: Mapping[str, Any], place: Position) -> int:
        return Line(to_json(line), place, self._copier(line)).size
