"""How records come without a topic: in waves, so that lines are shown between two checkpoints."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from itertools import islice

import pytest

from streamkernel.daemon.stream.unpublished import UnpublishedLines
from tests.chaos import intake
from tests.chaos.intake import IntakeFeeder, pauses
from tests.chaos.settings import EVERY_SECONDS, FLUSH_SECONDS
from tests.chaos.stream import Row, rows


def test_some_lines_are_due_long_before_a_checkpoint_shows_them_and_some_are_not() -> None:
    """With each new file in a watched directory comes a checkpoint."""
    lines = UnpublishedLines(FLUSH_SECONDS)
    lines.add(1, read_at=0.0)
    assert lines.due_at is not None
    shown = [min(pause, EVERY_SECONDS) for pause in islice(pauses(), 50)]
    assert max(shown) > 4 * lines.due_at
    assert min(shown) < lines.due_at


def test_a_feeder_keeps_its_rate_over_a_wave_and_its_rest(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(intake, "_PAUSE", 0.001)
    monkeypatch.setattr(intake, "_REST", 0.009)
    put: list[Sequence[Row]] = []
    twice = threading.Event()

    def take(some: Sequence[Row]) -> None:
        put.append(some)
        if len(put) == 2:
            twice.set()

    feeder = IntakeFeeder(take, rows(0), rate=10_000)
    twice.wait()
    feeder.stop()
    assert {len(some) for some in put} == {20}
    assert [row.key for some in put for row in some] == [b"%d" % number for number in range(feeder.sent)]
