"""A record that kills the process is found, tried, and put with the dead letters; a harmless one is not."""

from __future__ import annotations

import signal
from pathlib import Path
from types import SimpleNamespace

import pytest
from river import dummy

from streamkernel.connectors.memory import MemorySource, NullSink
from streamkernel.connectors.ports import Position, Record
from streamkernel.daemon.base.counts import RecordCounts
from streamkernel.daemon.checkpoints.directory import StateDirectory
from streamkernel.daemon.stream.dead_letter_rate import DeadLetterRate
from streamkernel.daemon.stream.direct import DirectStage
from streamkernel.daemon.stream.in_flight import InFlight, InFlightMarker, InFlightMarkers
from streamkernel.daemon.stream.loop import Checkpoints, Loop
from streamkernel.daemon.stream.processor import Processor
from streamkernel.daemon.stream.quality import ProgressiveLoss, Quality
from streamkernel.daemon.stream.river_learner import learner_for
from streamkernel.daemon.stream.sinks import Sinks
from tests.daemon.conftest import Home, Launcher
from tests.kills.simulated import killed, runs

MODEL = """
import os, signal
from river import dummy

class Deadly(dummy.PriorClassifier):
    '''Dies as x says: by itself, by a signal from outside, or not at all.'''

    def predict_proba_one(self, x):
        if x.get("die") == "abort":
            os.abort()
        if x.get("die") == "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        if x.get("die") == "once" and not os.path.exists("died"):
            open("died", "w").close()
            os.abort()
        return super().predict_proba_one(x)
"""


@pytest.fixture
def deadly(home: Home) -> Home:
    (home.folder / "deadly.py").write_text(MODEL)
    home.configure(
        source={"kind": "jsonl", "path": "stream.jsonl", "target": "y"}, model=["deadly.Deadly"], imports=["deadly"]
    )
    return home


def write(home: Home, how: str, records: int = 700, at: int = 613) -> None:
    lines = [f'{{"a": {number}, "y": "{"pq"[number % 2]}"}}' for number in range(records)]
    lines[at] = f'{{"a": {at}, "die": "{how}", "y": "p"}}'
    (home.folder / "stream.jsonl").write_text("\n".join(lines) + "\n")


def run(home: Home, launcher: Launcher, most: int) -> list[int]:
    """Start it again until it ends well, as a supervisor does; give the statuses."""
    statuses: list[int] = []
    while 0 not in statuses and len(statuses) < most:
        statuses.append(launcher.call(home, "run", "config.yaml").returncode)
    return statuses


def test_a_record_that_kills_the_process_is_found_and_the_others_are_learned(deadly: Home, launcher: Launcher) -> None:
    write(deadly, "abort")
    statuses = run(deadly, launcher, 10)
    # Once with its chunk, three times by itself; then it is tried in a child, and that dies too.
    assert statuses == [-signal.SIGABRT] * 4 + [0]
    (letter,) = deadly.lines("out/dead.jsonl")
    assert letter["reason"] == "kills_process"
    assert '"die": "abort"' in letter["raw"]
    account = deadly.header()["source"]["account"]
    assert (account["consumed"], account["learned"], account["dead"]) == (700, 699, 1)
    assert len(deadly.lines("out/predictions.jsonl")) == 699


@pytest.mark.usefixtures("processes")  # a child that tries the records one by one
def test_kills_from_outside_cost_no_record(deadly: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(deadly.folder)
    write(deadly, "none")
    for _ in range(6):  # always at the same chunk: one record in it would be taken for deadly at the third death
        killed(deadly, "mid-batch:3")
    assert runs(deadly) == 0
    assert deadly.header()["source"]["account"]["learned"] == 700


def test_a_child_that_is_killed_from_outside_proves_nothing(deadly: Home, launcher: Launcher) -> None:
    write(deadly, "kill")
    # As the out-of-memory killer would do it, over and over: the daemon tries, and is killed again.
    assert run(deadly, launcher, 7) == [-signal.SIGKILL] * 7
    assert deadly.header()["source"]["account"]["dead"] == 0


def marker_of(folder: Path) -> InFlightMarker:
    with StateDirectory(folder) as directory:
        return InFlightMarker(directory, "learning")


class TestMarker:
    FIRST, END = Position("4096:ab", 0, 100), Position("4096:ab", 0, 200)

    def test_records_that_each_have_a_name_of_their_own(self) -> None:
        in_flight = InFlight(Position("4000:ab", 0, 4000), Position("4096:cd", 0, 4200), 7, 1)
        assert in_flight.holds(Position("4050:ef", 0, 4050))
        assert not in_flight.holds(Position("4050:ef", 1, 4050))

    def test_a_good_end_leaves_none(self, tmp_path: Path) -> None:
        marker = marker_of(tmp_path)
        marker.set(self.FIRST, self.END, 7)
        marker.close()
        assert marker_of(tmp_path).interrupted is None


RAISING = """
import numpy as np
from river import dummy
from streamkernel.estimators.base import AdvanceResult

class Raising(dummy.PriorClassifier):
    '''Learns by the chunk, as the estimators of streamkernel do, and is no match for one record.'''

    def advance(self, xs, ys):
        for x in xs:
            if x.get("die"):
                raise OverflowError("too large")
        return AdvanceResult(["p"] * len(xs), None, np.zeros(len(xs)))
"""


@pytest.fixture
def raising(home: Home) -> Home:
    (home.folder / "raising.py").write_text(RAISING)
    source = {"kind": "jsonl", "path": "stream.jsonl", "target": "y"}
    home.configure(source=source, model=["raising.Raising"], imports=["raising"])
    write(home, "yes", records=120, at=77)
    return home


@pytest.mark.long
def test_what_a_model_raises_at_each_start_costs_one_record_and_no_other(raising: Home, launcher: Launcher) -> None:
    assert run(raising, launcher, 8) == [1] * 4 + [0]
    assert [letter["reason"] for letter in raising.lines("out/dead.jsonl")] == ["kills_process"]
    assert raising.header()["source"]["account"]["learned"] == 119


def test_records_a_model_raises_for_are_learned_one_by_one_at_the_next_start(
    raising: Home, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.syspath_prepend(raising.folder)
    for said in ("unexpected OverflowError: too large", "this one learns them one at a time"):
        assert runs(raising) == 1
        assert said in capsys.readouterr().err
    page = (raising.folder / "out/state/learning").read_bytes()
    assert page.startswith(b"A")
    assert b", 1, 0]" in page  # one record, which ended a process for the first time by itself


class TestSearch:
    """The record that killed is looked for among those in flight, and no further."""

    def test_it_ends_when_the_records_in_flight_have_passed(self, tmp_path: Path) -> None:
        first, end = Position("memory", 0, 20), Position("memory", 0, 40)
        marker_of(tmp_path).set(first, end, 20)
        marker = marker_of(tmp_path)
        sizes = passed(marker, 200)
        assert marker.interrupted is None
        # None but those that came up to those in flight went alone; how many others did is a matter of the first chunk.
        assert 1 in sizes
        assert max(sizes[sizes.index(1) :]) > 1
        assert sum(sizes) == 200


def passed(marker: InFlightMarker, records: int) -> list[int]:
    """Give the sizes of the chunks in which records of a stream called memory were learned."""
    source = MemorySource([({"a": float(n)}, "pq"[n % 2]) for n in range(records)])
    source.open()
    processor = Processor(
        learner_for(dummy.PriorClassifier()),
        Quality("classification", ["accuracy"], 10),
        ProgressiveLoss(10),
        DeadLetterRate(1.0, 10),
        RecordCounts(),
        DirectStage(),
    )
    sizes: list[int] = []
    observer = SimpleNamespace(turn=lambda: None, chunk=lambda processed: sizes.append(processed.taken))
    sinks = Sinks({"predictions": NullSink(), "dead_letters": NullSink()})
    Loop(source, processor, sinks, {}, observer, Checkpoints(), markers=InFlightMarkers({Record: marker})).run()  # type: ignore[arg-type]
    return sizes
