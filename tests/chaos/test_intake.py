"""How records come without a topic: in waves, so that lines are shown between two checkpoints."""

from __future__ import annotations

from itertools import islice

from streamkernel.daemon.stream.unpublished import UnpublishedLines
from tests.chaos.intake import pauses
from tests.chaos.settings import EVERY_SECONDS, FLUSH_SECONDS


def test_some_lines_are_due_long_before_a_checkpoint_shows_them_and_some_are_not() -> None:
    """With each new file in a watched directory comes a checkpoint."""
    lines = UnpublishedLines(FLUSH_SECONDS)
    lines.add(1, read_at=0.0)
    assert lines.due_at is not None
    shown = [min(pause, EVERY_SECONDS) for pause in islice(pauses(), 50)]
    assert max(shown) > 4 * lines.due_at
    assert min(shown) < lines.due_at
