"""What signals do: before a command handles them, while it does, and to process 1 of a container."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator

import pytest

from streamkernel.daemon.base import early_signals
from streamkernel.daemon.base.early_signals import STOPPING, handle_early_signals, quiet_interrupts
from streamkernel.daemon.stream.stop import StopSignals

ALL = (*STOPPING, signal.SIGUSR1, signal.SIGUSR2)


@pytest.fixture(autouse=True)
def _as_before() -> Iterator[None]:
    before = {number: signal.signal(number, signal.SIG_DFL) for number in ALL}  # some may be ignored, as by nohup
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.mark.parametrize("number", STOPPING)
def test_each_of_those_that_end_a_process_stops_it_well(number: signal.Signals) -> None:
    with StopSignals() as stopped:
        os.kill(os.getpid(), number)
        assert stopped.name == number.name
        # The second one is the system's.
        assert [signal.getsignal(one) for one in STOPPING] == [signal.SIG_DFL] * len(STOPPING)


def test_an_interrupt_while_it_imports_ends_it_without_a_traceback() -> None:
    for before, meanwhile in ((signal.default_int_handler, signal.SIG_DFL), (signal.SIG_IGN, signal.SIG_IGN)):
        signal.signal(signal.SIGINT, before)
        with quiet_interrupts():
            assert signal.getsignal(signal.SIGINT) is meanwhile
        assert signal.getsignal(signal.SIGINT) is before


def test_process_1_ends_by_them_at_once_until_a_command_handles_them(monkeypatch: pytest.MonkeyPatch) -> None:
    """The kernel keeps from it what it has no handler of its own for."""
    ended: list[int] = []
    ours = os.getpid()
    monkeypatch.setattr(early_signals.os, "getpid", lambda: 1)
    monkeypatch.setattr(early_signals.os, "_exit", ended.append)
    monkeypatch.setattr(early_signals, "_program", False)
    handle_early_signals()
    for number in STOPPING:
        os.kill(ours, number)
    assert ended == [128 + number for number in STOPPING]
    with StopSignals() as stopped:
        os.kill(ours, signal.SIGTERM)
        assert (stopped.name, len(ended)) == ("SIGTERM", len(STOPPING))
        os.kill(ours, signal.SIGTERM)  # again: at once
        assert ended[len(STOPPING) :] == [128 + signal.SIGTERM]
    os.kill(ours, signal.SIGTERM)  # the run is over, and its process about to end
    assert len(ended) == len(STOPPING) + 1
