"""A simulated SIGKILL: the daemon runs in the test's process, and dies there at a fault point.

`killed` runs the command line and raises `SimulatedKill` at the count-th pass of the point. An exception alone is no
kill, because it runs the `finally` and `except` blocks of the dead run. So the harness first takes from that run, in
the kernel, all that it could change a file or send anything with:

- **Descriptors.** `dup2` puts a file in memory that nobody reads in the place of each descriptor that the run opened:
  files, folders, pipes and sockets. A later write, fsync, truncation or send goes there, whoever makes it: Python's
  buffers when they are closed, a library in C, another thread. The old open file is closed without a flush. So bytes
  that were handed to the system stay, buffered bytes are lost, and the kernel releases the locks (flock).
- **Mappings.** Each file that the run mapped shared is replaced by a private copy at the same address.
- **Names.** An audit hook raises `SimulatedKill` wherever Python opens a file for writing, renames, links, removes,
  truncates or makes one, changes its mode or time, connects a socket, or starts a process. Python calls the hook
  before the system call, for every way that leads there. (A library in C that opens a file by its name would pass it;
  a run over files has none: Arrow writes its parts to a file that Python opened.)

Nothing else reaches a file or a socket. Then the exception unwinds the run, and the next run opens everything again
from the files. What the memory of the process holds beyond a run (modules, compiled code) holds no state of a run.

The point must be passed by the main thread: the exception ends no other. `test_simulated.py` compares the files that
are left with those of a real SIGKILL.
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import mmap
import os
import re
import sys
import threading
from collections.abc import Callable
from pathlib import Path

from streamkernel.daemon import cli
from streamkernel.daemon.base import crash
from tests.daemon.conftest import Home

_MAP_FIXED = 0x10
_CHANGES = re.compile(
    r"os\.(rename|remove|rmdir|mkdir|link|symlink|truncate|chmod|chown|utime|setxattr|removexattr)"
    r"|os\.(fork|forkpty|exec|posix_spawn|system|kill)|subprocess\.Popen|socket\.(connect|bind|sendto|sendmsg)"
)
_WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC

_libc = ctypes.CDLL(None, use_errno=True)
_libc.mmap.restype = ctypes.c_void_p
_libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]


class SimulatedKill(BaseException):
    """The end of a run that was killed."""


_dead = False


def _veto(event: str, arguments: tuple[object, ...]) -> None:
    if _dead and (_CHANGES.fullmatch(event) or (event == "open" and int(str(arguments[2])) & _WRITES)):
        raise SimulatedKill(event)


sys.addaudithook(_veto)


def _descriptors() -> dict[int, str]:
    """Return what each open descriptor of this process leads to."""
    found = {}
    for name in os.listdir("/proc/self/fd"):
        with contextlib.suppress(FileNotFoundError):  # the one that lists them
            found[int(name)] = os.readlink(f"/proc/self/fd/{name}")
    return found


def _shared_mappings() -> set[tuple[int, int]]:
    """Return where files are mapped so that what is written there changes them."""
    text = Path("/proc/self/maps").read_text()
    return {(int(start, 16), int(end, 16)) for start, end in re.findall(r"^(\w+)-(\w+) .w.s", text, flags=re.MULTILINE)}


class _Life:
    """One run, and what it opens."""

    def __init__(self) -> None:
        self._descriptors = _descriptors()
        self._mappings = _shared_mappings()

    def end(self) -> None:
        """Take its files from the run, and raise SimulatedKill."""
        global _dead
        assert threading.current_thread() is threading.main_thread()
        _dead = True  # first: a thread could open one more
        void = os.memfd_create("dead")
        for number, path in _descriptors().items():
            if number != void and self._descriptors.get(number) != path:
                os.dup2(void, number, inheritable=False)
        os.close(void)
        for start, end in _shared_mappings() - self._mappings:
            held = ctypes.string_at(start, end - start)
            flags = _MAP_FIXED | mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS
            assert _libc.mmap(start, end - start, mmap.PROT_READ | mmap.PROT_WRITE, flags, -1, 0) == start
            ctypes.memmove(start, held, len(held))
        raise SimulatedKill

    def bury(self) -> None:
        """Close what the run left open."""
        if self._left():
            gc.collect()
        for number in self._left():
            os.close(number)

    @staticmethod
    def _left() -> list[int]:
        return [number for number, path in _descriptors().items() if path.startswith("/memfd:dead")]


def dies(where: str, run: Callable[[], object]) -> bool:
    """Call `run`, and kill it at a fault point, `name:count`; return whether it came there."""
    global _dead
    life = _Life()
    crash.arm(where, life.end)
    try:
        run()
    except SimulatedKill:
        pass
    finally:
        crash.arm("")
        was_dead, _dead = _dead, False
        life.bury()
    return was_dead


def may_die(home: Home, where: str, *arguments: str) -> bool:
    """Run the command line, and kill it at a fault point; return whether it came there."""
    status = None

    def run() -> None:
        nonlocal status
        status = runs(home, *arguments)

    died = dies(where, run)
    assert died or status == 0, f"it ended with status {status}"
    return died


def killed(home: Home, where: str, *arguments: str) -> None:
    """Run the command line, by default `run config.yaml`, until it dies at a fault point."""
    assert may_die(home, where, *arguments), f"it never came to {where}"


def runs(home: Home, *arguments: str) -> int:
    """Run the command line, by default `run config.yaml`, to its end in this process; return the status."""
    with contextlib.chdir(home.folder):
        return cli.main(arguments or ("run", "config.yaml"))
