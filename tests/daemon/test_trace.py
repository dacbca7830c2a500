"""How far a record goes: the calls, functions and files from the poll of one CSV record to its line in the output."""

from __future__ import annotations

import sys
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

from streamkernel.daemon.assembly.plan import prepare
from streamkernel.daemon.runtime import run
from streamkernel.daemon.stream import loop
from tests.daemon.conftest import Home, write_stream

ROOT = Path(__file__).parents[2]
RECORDS = 300
MOST = {"functions": 147, "files": 56, "changes": 134}


class Trace:
    """The calls of our functions while a loop takes one record."""

    def __init__(self) -> None:
        self.files: list[str] = []
        self.functions: set[Any] = set()

    def __call__(self, frame: FrameType, event: str, _: Any) -> None:
        name = frame.f_code.co_filename
        ours = name.startswith(str(ROOT)) and "/.venv/" not in name and "/tests/" not in name
        if event == "call" and ours and not frame.f_code.co_name.startswith("<"):  # a comprehension, until Python 3.12
            self.files.append(name.removeprefix(f"{ROOT}/").replace("streamkernel/connectors", "connectors"))
            self.functions.add(frame.f_code)

    @property
    def figures(self) -> dict[str, int]:
        """How many functions and files there are, and how often a call leads into another file than the one before."""
        changes = sum(one != other for one, other in zip(self.files, self.files[1:], strict=False))
        return {"functions": len(self.functions), "files": len(set(self.files)), "changes": changes}

    def listed(self) -> str:
        """Return the functions, one a line."""
        return "\n".join(sorted(f"{one.co_filename}: {one.co_qualname}" for one in self.functions))


class TracedFeed:
    """A feed that hands out one record at a time, and begins to trace each."""

    def __init__(self, feed: loop.Feed, traces: list[Trace]) -> None:
        self._feed = feed
        self._traces = traces

    def poll(self, _: int, timeout: float) -> Any:
        self._traces.append(Trace())
        sys.setprofile(self._traces[-1])
        return self._feed.poll(1, timeout)

    @property
    def exhausted(self) -> bool:
        return self._feed.exhausted


def test_one_record_passes_few_functions_and_files(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    traces: list[Trace] = []
    begin, deliver = loop.Loop.__post_init__, loop.Loop._deliver

    def traced(self: loop.Loop) -> None:
        begin(self)
        self.feed = TracedFeed(self.feed, traces)

    def delivered(self: loop.Loop, batch: Any) -> None:
        deliver(self, batch)
        sys.setprofile(None)

    monkeypatch.setattr(loop.Loop, "__post_init__", traced)
    monkeypatch.setattr(loop.Loop, "_deliver", delivered)
    write_stream(home.folder / "stream.csv", RECORDS, bad=False)
    model = [{"streamkernel.KernelClassifier": {"seed": 1}}]
    try:
        run(prepare(home.configure(model=model, checkpoint={"directory": "out/state", "every_records": 10_000})))
    finally:
        sys.setprofile(None)  # the last poll brings nothing to deliver
    # Every 32nd record makes a step, and the first ones wait for a bandwidth: this is one of the others.
    one = sorted(traces[RECORDS // 2 : RECORDS - 1], key=lambda trace: len(trace.files))[RECORDS // 5]
    assert {name: figure for name, figure in one.figures.items() if figure > MOST[name]} == {}, one.listed()
