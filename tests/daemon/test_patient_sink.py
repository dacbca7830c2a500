"""A sink whose reader is slow: it is waited for, unless the command is to stop."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from connectors.memory import MemorySink
from connectors.ports import Position, SinkError
from streamkernel.daemon.stream.patient import PatientSink


def test_a_slow_reader_is_waited_for() -> None:
    class SlowSink(MemorySink):
        left = 3

        def flush(self) -> int:
            if self.left:
                self.left -= 1
                try:
                    raise BlockingIOError
                except BlockingIOError:
                    raise SinkError("nobody reads it") from None
            return super().flush()

        def write(self, lines: Sequence[Any], positions: Sequence[Position] = ()) -> None:
            super().write(lines, positions)
            self.flush()

    slow = SlowSink()
    PatientSink(slow, lambda: False).write([{"a": 1}], [])
    assert (slow.lines, slow.left) == ([{"a": 1}], 0)
    slow.left = 1
    with pytest.raises(SinkError):
        PatientSink(slow, lambda: True).write([{"a": 2}], [])
