"""What the daemon says about dead letters: why a record is one, what to do, in the log, on the page, on a terminal."""

from __future__ import annotations

import logging
import sys
import time
from collections import Counter, deque
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from streamkernel.connectors.memory import NullSink
from streamkernel.connectors.ports import Fault, Position, Source, at_offset
from streamkernel.daemon.base.once_per_minute import OncePerMinute
from streamkernel.daemon.monitoring.visible import visible
from streamkernel.daemon.stream.record_batch import RecordBatch

__all__ = ["DeadLetterLog", "DeadLetterPrinter", "LastDeadLetters", "explained", "remedy"]

_log = logging.getLogger(__name__)

_WHAT = {"source": "records", "labels.source": "labels", "warm_start.source": "records of the warm start"}
_MOST_PRINTED, _MOST_RAW = 10, 120
_KEPT, _MOST_DETAIL = 20, 500
# A search finds secrets only in a text that is cut after them.
_LONGEST_SECRET = 4096

# By reason, and where it matters by the fault's cause or the kind of the source.
_REMEDIES = {
    "not_json": "write one JSON object a line; {section}.kind: csv reads CSV",
    "not_json kafka": "check what writes to the topic: each message must be a JSON object; {section}.value_format "
    "reads Avro and Protobuf",
    "not_json journal": "write each record as a JSON object, names and values",
    "not_an_object": "write each record as a JSON object, names and values",
    "csv_width": "set {section}.delimiter to the field separator, and {section}.multiline: true if quoted fields "
    "contain line ends",
    "csv_width quotes": "close the quote in that line, or double it if it is part of the text",
    "open_quote": "set {section}.multiline: true if quoted fields contain line ends, or fix the quote",
    "encoding": "convert the text to UTF-8, for example with iconv -f latin1 -t utf-8",
    "encoding csv": "set {section}.encoding to the encoding of the file, such as cp1252",
    "too_long": "raise limits.max_record_bytes",
    "target": "set {section}.target_type to the type of {section}.target",
    "infinite": "leave out the value, or leave the cell empty",
    "nested": "set {section}.inputs.nested: flatten to make each inner value an input, or ignore",
    "nested same_name": "rename one of them in the program that writes the records",
    "input_type": "set format or decimal, na or 'invalid: missing' under {section}.inputs.types to match the column",
    "string_too_long": "raise limits.max_string",
    "corrupt": "that file cannot be read: the log says why",
    "corrupt kafka": "check what writes to the topic: these bytes cannot be decompressed or read",
    "schema": "check what writes to the topic: its values do not match {section}.value_format, or their schema",
    "key": "write the field named by labels.key with each label",
    "kills_process": "a library of the model crashes on these records: report that to its authors",
    "refused": "",  # the detail says it
    "refused type": "{section}.inputs.exclude leaves out columns that a step cannot use",
    "refused type river": "",
}


def remedy(fault: Fault, section: str, kind: str) -> str:
    """Return what to do about records with a fault; empty if its detail says it.

    Parameters
    ----------
    fault
        Why the first of them cannot be used.
    section, kind
        The section of their source in the configuration, and its kind.

    Examples
    --------
    >>> remedy(Fault("encoding", "byte 0xe9 is not UTF-8"), "source", "csv")
    'set source.encoding to the encoding of the file, such as cp1252'

    """
    reason, cause = fault.reason, fault.cause
    keys = (f"{reason} {cause} {kind}", f"{reason} {cause}", f"{reason} {kind}", reason)
    return next(_REMEDIES[key] for key in keys if key in _REMEDIES).format(section=section)


def explained(fault: Fault, section: str, kind: str) -> str:
    """Return why a record cannot be used, and what to do about it.

    Examples
    --------
    >>> from streamkernel.connectors.ports import CausedFault
    >>> explained(CausedFault("refused", "TypeError: a text", "type"), "source", "csv")
    'TypeError: a text: source.inputs.exclude leaves out columns that a step cannot use'

    """
    return ": ".join(filter(None, (fault.detail, remedy(fault, section, kind))))


def _place_of(letter: Mapping[str, Any], source: Source | None) -> str:
    """Return where the record of a dead letter is, in the words of its source."""
    where = letter["position"]
    return (at_offset if source is None else source.place)(where["partition"], where["offset"])


class LastDeadLetters:
    """Ring buffer of the last twenty dead letters, cut to what the status page shows.

    Parameters
    ----------
    raw_chars
        How many characters of a raw record are kept; 0: none.
    redact
        Takes secrets of the configuration out of a text.
    now
        Gives the time, in seconds since 1970.

    Attributes
    ----------
    letters
        A copy that nobody writes to, the latest first.

    """

    def __init__(
        self, raw_chars: int, redact: Callable[[str], str] = str, now: Callable[[], float] = time.time
    ) -> None:
        self._raw_chars = raw_chars
        self._redact = redact
        self._now = now
        self._ring: deque[dict[str, Any]] = deque(maxlen=_KEPT)
        self.letters: tuple[dict[str, Any], ...] = ()

    def add(self, letters: Sequence[Mapping[str, Any]]) -> None:
        """Add the letters of a chunk; of a flood, only the last."""
        if letters:
            self._ring.extend(map(self._cut, letters[-_KEPT:]))
            self.letters = tuple(reversed(self._ring))

    def _cut(self, letter: Mapping[str, Any]) -> dict[str, Any]:
        kept: dict[str, Any] = {
            "time": round(self._now(), 3),
            "reason": letter["reason"],
            # Redacted before it is cut: a search does not find half a secret.
            "detail": self._redact(letter["detail"])[:_MOST_DETAIL],
            "position": letter["position"],
        }
        if self._raw_chars:
            raw = letter["raw"]
            kept |= {
                "encoding": letter["encoding"],
                "raw": self._redact(raw[: self._raw_chars + _LONGEST_SECRET])[: self._raw_chars],
                "raw_chars": len(raw),
            }
        return kept


class DeadLetterLog:
    """Logs dead letters, the first of each reason at once, then one line a minute; sums them up with the remedy.

    Parameters
    ----------
    kinds
        The kind of the source of each section: ``"source"``, ``"labels.source"``, ``"warm_start.source"``.
    sources
        The sources themselves, which know the line of an offset.
    clock
        Gives seconds, and never goes back.
    refused
        What to do about records that the model refuses; empty: the detail says it.
    last
        Keeps the last ones for the status page.

    """

    def __init__(
        self,
        kinds: dict[str, str],
        clock: Callable[[], float] = time.monotonic,
        refused: str = "",
        last: LastDeadLetters | None = None,
        sources: Mapping[str, Source] | None = None,
    ) -> None:
        self._last = last
        self._kinds = kinds
        self._sources = sources or {}
        self._refused = refused
        self._first: dict[tuple[str, str], Fault] = {}
        self._counts: Counter[tuple[str, str]] = Counter()
        self._minute = OncePerMinute(clock)

    def chunk(self, done: RecordBatch) -> None:
        """Note the dead letters of a chunk."""
        if self._last is not None:
            self._last.add(done.letters)
        for letter, fault in zip(done.letters, done.faults, strict=True):
            where = letter["position"]
            section = f"{where['source']}.source" if "source" in where else "source"
            key = section, fault.reason
            self._first.setdefault(key, fault)
            self._counts[key] += 1
            if n_unlogged := self._minute.due(key):
                what, place = _WHAT[section], _place_of(letter, self._sources.get(section))
                which = (
                    f"a dead letter of the {what} at"
                    if n_unlogged == 1
                    else (f"{n_unlogged} dead letters of the {what}, the last at")
                )
                _log.warning("%s %s: %s: %s", which, place, fault.reason, self._with_advice(fault) or fault.detail)

    def summarize(self, advice: str = "") -> None:
        """Log how many dead letters there were of each reason, why, and what to do; then the advice, if any."""
        for key, count in self._counts.most_common():
            (section, reason), fault = key, self._first[key]
            said = self._with_advice(fault) or explained(fault, section, self._kinds.get(section, ""))
            letters = "dead letter" if count == 1 else "dead letters"
            _log.warning("%d %s of the %s: %s: %s", count, letters, _WHAT[section], reason, said)
        if self._counts and advice:
            _log.info("%s", advice)

    def _with_advice(self, fault: Fault) -> str:
        refused = fault.reason == "refused" and self._refused
        return f"{fault.detail}: {self._refused}" if refused else ""


class DeadLetterPrinter(NullSink):
    """A sink that prints the first ten dead letters to standard error, a line each, and counts all of them.

    Parameters
    ----------
    name
        The file of the records.
    source
        The source itself, which knows the line of an offset.

    Attributes
    ----------
    reasons
        How many there were, by reason.

    """

    def __init__(self, name: str, source: Source | None = None) -> None:
        self._source = source
        self._name = "standard input" if name == "-" else name
        self.reasons: Counter[str] = Counter()

    def write(self, lines: Sequence[Mapping[str, Any]], positions: Sequence[Position] = ()) -> None:  # noqa: ARG002
        """Print dead letters while there are few."""
        for letter in lines[: max(0, _MOST_PRINTED - self.reasons.total())]:
            raw, place = letter["raw"], _place_of(letter, self._source)
            cut = "..." if len(raw) > _MOST_RAW else ""
            self._print(f", {place}: {letter['reason']}: {letter['detail']}: {raw[:_MOST_RAW]}{cut}")
        self.reasons.update(letter["reason"] for letter in lines)

    def summarize(self, records: int) -> None:
        """Print how many of the records were dead letters, by reason, if any was."""
        if dead := self.reasons.total():
            counts = ", ".join(f"{count:,} {reason}" for reason, count in self.reasons.most_common())
            shown = f"; the first {_MOST_PRINTED} are shown" if dead > _MOST_PRINTED else ""
            self._print(f": {dead:,} of {records:,} records have no prediction: {counts}{shown}")

    def _print(self, text: str) -> None:
        print(visible(self._name + text), file=sys.stderr)
