"""What goes wrong inside of a daemon's process, where nothing outside of it can do the harm.

Each is done before the daemon starts, by its name and arguments, and to Python alone: no code of the daemon is another.
"""

from __future__ import annotations

import functools
import importlib
import os
import signal
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND


def shift_clock(seconds: float, while_there: str) -> None:
    """Set the clock of the wall back or on as long as a file is there; the monotonic one stays."""
    flag = Path(while_there)

    def shift(clock: Callable[..., Any], step: float) -> Callable[..., Any]:
        return lambda *arguments: clock(*arguments) + (step if flag.exists() else 0)

    real = time.clock_gettime
    time.clock_gettime = lambda clock: real(clock) + (seconds if clock == time.CLOCK_REALTIME and flag.exists() else 0)
    time.time = shift(time.time, seconds)
    time.time_ns = shift(time.time_ns, int(seconds * 1e9))


def refuse_files(directory: str, number: int, while_there: str) -> None:
    """Let no file below a directory be opened for writing, renamed or made as long as a file is there."""
    below, flag = os.path.abspath(directory) + os.sep, Path(while_there)

    def watch(event: str, arguments: tuple[Any, ...]) -> None:
        if event == "open":
            name, _, flags = arguments
            if not (flags or 0) & _WRITING:
                return
        elif event in ("os.rename", "os.remove", "os.mkdir", "os.truncate"):
            name = arguments[0]
        else:
            return
        if not isinstance(name, str | os.PathLike):
            return
        path = os.fspath(name)
        # What stands in the directory is opened from its descriptor, by the bare name; all else has a folder before it.
        if (os.path.abspath(path).startswith(below) or os.sep not in path) and flag.exists():
            raise OSError(number, os.strerror(number), path)

    sys.addaudithook(watch)


def die_at(call: str, count: int, after: bool) -> None:
    """Die by SIGKILL at a call of a method, before or after it."""

    def deadly(method: Callable[[], Any]) -> Any:
        if after:
            method()
        os.kill(os.getpid(), signal.SIGKILL)

    _at_call(call, count, deadly)


def _at_call(call: str, count: int, instead: Callable[[Callable[[], Any]], Any]) -> None:
    module, _, path = call.partition(":")
    class_name, _, name = path.partition(".")
    owner = getattr(importlib.import_module(module), class_name)
    method = getattr(owner, name)
    left = count

    @functools.wraps(method)
    def other(*arguments: Any, **keywords: Any) -> Any:
        nonlocal left
        left -= 1
        made = functools.partial(method, *arguments, **keywords)
        return made() if left else instead(made)

    setattr(owner, name, other)


_KNOWN: dict[str, Callable[..., None]] = {each.__name__: each for each in (shift_clock, refuse_files, die_at)}


def apply(wanted: Sequence[tuple[str, dict[str, Any]]]) -> None:
    """Do what a job asks for, by name and keyword arguments."""
    for name, keywords in wanted:
        _KNOWN[name](**keywords)
