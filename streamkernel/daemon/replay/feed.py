"""The feed of a replay: dead letters that are to be replayed, decoded to records."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Literal, NamedTuple

from streamkernel.connectors.ports import Fault, Position, Record
from streamkernel.daemon.base.events import LabelRecord
from streamkernel.daemon.replay.letters import DeadLetter
from streamkernel.daemon.replay.report import ReplayReport
from streamkernel.daemon.replay.sources import ReplaySource
from streamkernel.daemon.run_state.replayed import LetterPlace

__all__ = ["WAIT_SECONDS", "ReplayFeed", "ReplayedRecord", "is_replayed", "place_of"]

_STREAM = "replay:"
_LABELS = "labels:"
_MOST_BYTES = 2**24
WAIT_SECONDS = 0.5


def is_replayed(origin: Position) -> bool:
    """Return whether a line is for a record of a replay."""
    return origin.stream.removeprefix(_LABELS).startswith(_STREAM)


def place_of(origin: Position) -> LetterPlace:
    """Return the place of the letter that a line of a replay is for.

    Examples
    --------
    >>> place_of(Position("labels:replay:#1", 0, 70))
    LetterPlace(source='labels', partition=0, repeat=1, offset=70)

    """
    source: Literal["labels", "records"] = "labels" if origin.stream.startswith(_LABELS) else "records"
    repeat = origin.stream.removeprefix(_LABELS).removeprefix(f"{_STREAM}#")
    return LetterPlace(source, origin.partition, int(repeat) if repeat.isdecimal() else 0, origin.offset)


class ReplayedRecord(NamedTuple):
    """A letter, its record, and by what the record's dead letter would be known."""

    letter: DeadLetter
    record: Record
    origin: Position


class ReplayFeed:
    """Hands out the records of dead letters; those that cannot be decoded are reported as still dead.

    Parameters
    ----------
    letters
        Those to be replayed, in order.
    sources
        The sources by their name in the place of a letter.
    report
        Takes those that are still dead.
    handed
        Called with each one that is handed out.
    kills
        Whether a record makes a process die: asked for those that are dead letters for it.
    stopped
        Whether to stop.

    """

    def __init__(
        self,
        letters: Iterator[DeadLetter],
        sources: Mapping[str, ReplaySource],
        report: ReplayReport,
        handed: Callable[[ReplayedRecord], None],
        kills: Callable[[Record], bool],
        stopped: Callable[[], bool],
    ) -> None:
        self._letters = letters
        self._sources = sources
        self._report = report
        self._handed = handed
        self._kills = kills
        self._stopped = stopped
        self.exhausted = False

    def poll(self, max_records: int, timeout: float) -> list[Record]:  # noqa: ARG002 - a file is never waited for
        """Hand out the next records; see `streamkernel.connectors.ports.Source.poll`."""
        records: list[Record] = []
        size = 0
        while len(records) < max_records and size < _MOST_BYTES and not self._stopped():
            letter = next(self._letters, None)
            if letter is None:
                self.exhausted = True
                break
            replayed = self._decode(letter)
            if replayed is None:  # stopped while it waited
                break
            fault = replayed.record.fault
            if fault is not None:
                self._report.add_still_dead(f"line {letter.line}", fault.reason, fault.detail)
            elif not self._stopped():  # while it was tried whether the record kills
                self._handed(replayed)
                records.append(replayed.record)
                size += len(letter.raw)
        return records

    def _decode(self, letter: DeadLetter) -> ReplayedRecord | None:
        place = letter.place
        state = self._sources[place.source]
        # Of several files, one after the other, only the place in the last is known.
        here = state.positions.get(place.partition) or state.positions[max(state.positions)]
        # The name of a place in a file changes as it is read; and a topic's offsets never start over.
        stream = _STREAM + (here.stream if state.topic else f"#{place.repeat}" if place.repeat else "")
        position = Position(stream, place.partition, place.offset)
        while not state.source.decodable(letter.raw, WAIT_SECONDS):
            if self._stopped():
                return None
        record = state.source.decode(letter.raw, position, here)
        if place.source == "labels":
            record = LabelRecord._make(record)
            position = position._replace(stream=_LABELS + stream)
        fault = record.fault or self._fault(letter, record)
        return ReplayedRecord(letter, record._replace(fault=fault), position)

    def _fault(self, letter: DeadLetter, record: Record) -> Fault | None:
        if record.blank:
            return Fault(letter.reason or "blank", "its raw is empty: put the record there, or remove the line")
        if letter.cut_at == len(letter.raw):
            return Fault(letter.reason, "its raw was cut: put the whole record there")
        if letter.reason == "kills_process" and self._kills(record):
            return Fault("kills_process", "a child process died on it")
        return None
