"""Where a source begins by its own choice: recorded before its first record is learned, however full the disk is."""

from __future__ import annotations

import errno
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from streamkernel.connectors.memory import MemorySource
from streamkernel.connectors.ports import Position
from streamkernel.daemon.assembly.plan import prepare
from streamkernel.daemon.base.retry import Backoff
from streamkernel.daemon.checkpoints.store import CheckpointStore
from streamkernel.daemon.config.plan import Plan
from streamkernel.daemon.run_state import schedule
from streamkernel.daemon.runtime import run
from streamkernel.daemon.stream import loop
from tests.daemon.conftest import Home

BEGIN = 30


class Late(MemorySource):
    """Is reached after the start, and begins at its end, as a topic does with `start: latest`."""

    def __init__(self, records: int) -> None:
        super().__init__([({"a": float(number)}, number % 2 == 0) for number in range(records)])
        self._polls = 0
        self._resumed = False

    def open(self, positions: Mapping[int, Position] | None = None) -> None:
        super().open(positions)
        self._resumed = bool(positions)

    def poll(self, max_records: int, timeout: float) -> list[Any]:
        self._polls += 1
        if self._polls == 3 and not self._resumed:
            self._next = BEGIN
        return super().poll(max_records, timeout) if self._polls >= 3 else []

    @property
    def starting_offsets(self) -> Mapping[int, Position]:
        return {} if self._resumed or self._polls < 3 else {0: Position(self.STREAM, 0, BEGIN)}


def test_no_record_is_learned_before_that(
    home: Home, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(loop, "POLL_SECONDS", 0.001)
    seconds = iter(range(0, 10**9, 100))
    monkeypatch.setattr(schedule, "Backoff", lambda _: Backoff(lambda: next(seconds)))
    asked = []

    def full_for_a_while(write: Callable[..., Path]) -> Callable[..., Path]:
        def write_later(store: CheckpointStore, header: Mapping[str, Any], payload: bytes) -> Path:
            source = header["source"]
            asked.append((source["account"]["consumed"], [offset for _, _, offset, *_ in source["positions"]]))
            if 1 < len(asked) < 5:
                raise OSError(errno.ENOSPC, "No space left on device")
            return write(store, header, payload)

        return write_later

    monkeypatch.setattr(CheckpointStore, "write", full_for_a_while(CheckpointStore.write))
    monkeypatch.setattr(CheckpointStore, "replace", full_for_a_while(CheckpointStore.replace))

    def plan() -> Plan:
        config = home.configure(model=["river.linear_model.LogisticRegression"])
        (home.folder / "stream.csv").write_text("a,y\n")
        return replace(prepare(config), sources={"source": Late(100)})

    run(plan(), max_records=20)
    assert asked[:5] == [(0, []), *[(0, [BEGIN])] * 4]
    assert caplog.text.count("no record is learned until a checkpoint stores where the source begins") == 1
    run(plan())
    assert home.header()["source"]["account"]["consumed"] == 100 - BEGIN
