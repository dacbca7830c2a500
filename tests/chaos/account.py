"""The account of a trial: what became of each record that was produced, downstream and in the books of the daemon."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import orjson

from tests.chaos.stream import LEARNED, SKIPPED, UNLABELED, Row
from tests.kafka.producing import consume

Place: TypeAlias = tuple[int, int]
"""Partition and offset of a record in its topic."""

_UNCLEAN = re.compile(r"Traceback|Exception in thread|Exception ignored|unexpected \w+|\w+Warning: ")
# What a decoder says of bytes that are wrong on purpose.
_DEAD_LETTER = re.compile(r" warning (partition \d+: )?(a|\d+) dead letters? of the (records|labels)[ ,:]")


class Line(NamedTuple):
    """A line of an output: for which record it was written, and what else it says, as JSON."""

    place: Place
    text: bytes

    @property
    def reason(self) -> str:
        """Why the record is a dead letter."""
        return str(orjson.loads(self.text)["reason"])


@dataclass
class Findings:
    """What an account shows."""

    records: int = 0
    lost: int = 0  #: records without the line they should have, or not learned
    doubled: int = 0  #: lines too many for a record, or learned too often
    faults: list[str] = field(default_factory=list)
    digest: bool | None = None  #: whether the model is that of an undisturbed run; None where that is not promised
    said: str = ""  #: the line of the log that tells of the failure

    @property
    def good(self) -> bool:
        """Whether nothing is wrong."""
        return not (self.lost or self.doubled or self.faults or self.digest is False)


def read_topic(bootstrap: str, topic: str) -> list[Line]:
    """Read the lines of an output topic that count, partition by partition."""
    lines = []
    for records in consume(bootstrap, topic).values():
        for record in records:
            headers = dict(record.headers)
            place = int(headers["source.partition"]), int(headers["source.offset"])
            line = _line(record.value)
            assert line.place == place, f"a line for {line.place} has headers for {place}"
            lines.append(line)
    return lines


def read_file(path: Path) -> list[Line]:
    """Read the lines of an output file."""
    with path.open("rb") as file:
        return [_line(text) for text in file]


def _line(text: bytes) -> Line:
    said = orjson.loads(text)
    position = said.pop("position")
    return Line((position["partition"], position["offset"]), _small(orjson.dumps(said, option=orjson.OPT_SORT_KEYS)))


def _small(text: bytes) -> bytes:
    # What orjson (3.13) gives holds 4 KB each, and there may be half a million of them.
    return bytes(memoryview(text))


def account(
    expected: Mapping[Place, Row], predictions: Sequence[Line], letters: Sequence[Line], books: Mapping[str, int]
) -> Findings:
    """Compare what was to become of each record with what did."""
    found = Findings(records=len(expected))
    told, dead = Counter(line.place for line in predictions), Counter(line.place for line in letters)
    wrong: dict[str, list[Place]] = defaultdict(list)
    for place, row in expected.items():
        for count, wanted, what in (
            (told[place], row.predicted, "predictions"),
            (dead[place], row.dead, "dead letters"),
        ):
            if count < wanted:
                found.lost += 1
                wrong[f"no {what}"].append(place)
            elif count > 1:
                found.doubled += count - 1
                wrong[f"doubled {what}"].append(place)
            elif count > wanted:
                wrong[f"{what} of the other kind of record"].append(place)
    wrong["lines without a record"] += [place for place in told | dead if place not in expected]
    wrong["another reason for the dead letter"] += [
        line.place for line in letters if line.place in expected and line.reason != expected[line.place].fate
    ]
    found.faults += [f"{len(places)} {what}: {_few(places)}" for what, places in wrong.items() if places]
    _compare_books(expected.values(), books, found)
    return found


def _compare_books(rows: Iterable[Row], books: Mapping[str, int], found: Findings) -> None:
    fates = Counter(row.fate if not row.dead else "dead" for row in rows)
    wanted = {
        "consumed": fates.total(),
        "predicted": fates[LEARNED] + fates[UNLABELED],
        **{fate: fates[fate] for fate in (LEARNED, UNLABELED, SKIPPED, "dead")},
    }
    for name, count in wanted.items():
        if books[name] != count:
            found.faults.append(f"{name} is {books[name]} in the checkpoint, and must be {count}")
    found.lost += max(0, wanted[LEARNED] - books[LEARNED])
    found.doubled += max(0, books[LEARNED] - wanted[LEARNED])


def compare(found: Findings, ours: Sequence[bytes], digest: str, theirs: Sequence[bytes], undisturbed: str) -> None:
    """Compare predictions, in the order they were made, and the model with those of an undisturbed run."""
    same = digest == undisturbed
    found.digest = same and found.digest is not False
    if not same:
        found.faults.append(f"the model's digest is {digest[:12]}, that of an undisturbed run {undisturbed[:12]}")
    differing = [number for number, (one, other) in enumerate(zip(ours, theirs, strict=False)) if one != other]
    if differing or len(ours) != len(theirs):
        found.faults.append(
            f"{len(differing)} of {len(ours)} predictions differ from the {len(theirs)} of an undisturbed run, "
            f"the first at {differing[0] if differing else min(len(ours), len(theirs))}"
        )


def listen(found: Findings, log: str, says: Iterable[str]) -> None:
    """Look for what an operator must be told, and for what no log should hold."""
    lines = log.splitlines()
    for pattern in says:
        told = [line for line in lines if re.search(pattern, line)]
        found.said = found.said or "".join(told[-1:])
        if not told:
            found.faults.append(f"the log never says {pattern!r}")
    found.faults += [
        f"the log says: {line}" for line in lines if _UNCLEAN.search(line) and not _DEAD_LETTER.search(line)
    ]


def _few(places: Sequence[Any]) -> str:
    shown = ", ".join(f"{partition}:{offset}" for partition, offset in sorted(places)[:5])
    return shown + (", ..." if len(places) > 5 else "")
