"""What a 202 stands for, and that a full journal has room again once the run has saved what it read."""

from __future__ import annotations

import os
import threading

import pytest

from connectors.journal import writer as writing
from streamkernel.daemon.runtime import run
from streamkernel.daemon.wiring.plan import prepare
from tests.daemon.conftest import Home
from tests.daemon.service import DIRECT, serving

ROW = {"a": 0.25, "y": "yes"}


def test_it_is_acknowledged_after_it_is_durable_and_published(here: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    order: list[str] = []
    reached, gate = threading.Event(), threading.Event()
    real = os.fdatasync

    def sync(descriptor: int) -> None:
        reached.set()
        gate.wait()
        real(descriptor)
        order.append("durable")

    with serving(here, **DIRECT) as (client, _):
        before = (here.folder / "out/records/committed").read_bytes()
        monkeypatch.setattr(writing.os, "fdatasync", sync)

        def ask() -> None:
            order.append(str(client.ask("/learn", ROW)[0]))

        asking = threading.Thread(target=ask)
        asking.start()
        reached.wait()
        assert (here.folder / "out/records/committed").read_bytes() == before
        assert order == []
        gate.set()
        asking.join()
        assert order == ["durable", "202"]
        assert (here.folder / "out/records/committed").read_bytes() != before


def test_a_run_that_saves_makes_room(here: Home) -> None:
    """The oldest segments go; what was acknowledged is learnt once, and known again."""
    source = {**DIRECT["source"], "max_bytes": 2**20, "follow": False}
    sections = {**DIRECT, "source": source, "checkpoint": {"directory": "out/state", "every_records": 100, "keep": 2}}
    wide = {f"c{number}": "x" * 200 for number in range(100)}
    with serving(here, **sections) as (client, _):
        n_taken = 0
        while (answer := client.ask("/learn", {**ROW, **wide}, Idempotency_Key=f"{n_taken}"))[0] == 202:
            n_taken += 1
        assert answer[0] == 503
        assert answer[1]["error"]["reason"] == "journal_full"
        assert int(client.headers["retry-after"]) > 0
        before = sorted((here.folder / "out/records").glob("*.jsonl"))
        run(prepare(here.config))
        after = sorted((here.folder / "out/records").glob("*.jsonl"))
        assert len(after) < len(before)
        assert before[0] not in after
        assert client.ask("/learn", {**ROW, **wide}, Idempotency_Key=f"{n_taken}") == (202, {"status": "accepted"})
        assert client.ask("/learn", {**ROW, **wide}, Idempotency_Key="0") == (202, {"status": "repeated"})
        run(prepare(here.config))
        assert here.header()["account"]["learnt"] == n_taken + 1
