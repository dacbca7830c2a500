"""Checkpoint files of processes that are killed, or cut short by the system, and fault points."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import streamkernel
from streamkernel.daemon.checkpoints.store import CheckpointStore
from tests.kills.simulated import dies

pytestmark = pytest.mark.usefixtures("processes")

# The package itself imports the estimators, which takes a second; these processes need none of them.
BARE = f"""
import pathlib, resource, signal, sys, types
package = types.ModuleType("streamkernel")
package.__path__ = {list(streamkernel.__path__)!r}
sys.modules["streamkernel"] = package
"""


@pytest.mark.parametrize(
    ("point", "newest", "left_behind"),
    [
        ("checkpoint-writing", 2, True),
        ("checkpoint-before-rename", 2, True),
        ("checkpoint-after-rename", 3, False),
    ],
)
def test_a_kill_leaves_the_old_one_or_the_new_one(tmp_path: Path, point: str, newest: int, left_behind: bool) -> None:
    def write() -> None:
        store = CheckpointStore(tmp_path)
        store.lock()
        for i in range(5):
            store.write({"i": i}, bytes(100_000))

    assert dies(f"{point}:4", write)
    leftovers = list(tmp_path.glob(".*.tmp"))
    assert len(leftovers) == left_behind
    if point == "checkpoint-writing":
        assert 49_000 < leftovers[0].stat().st_size < 51_000
    store = CheckpointStore(tmp_path)
    store.lock()
    found = store.newest()
    assert found is not None
    assert found.header == {"i": newest}
    assert not list(tmp_path.glob(".*.tmp"))
    assert store.write({}, b"").name == f"checkpoint-{newest + 1:012d}.skc"
    store.close()


FULL = """
from streamkernel.daemon.checkpoints.store import CheckpointStore

store = CheckpointStore(pathlib.Path(sys.argv[1]))
store.lock()
store.write({"i": 0}, b"small")
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (50_000, resource.RLIM_INFINITY))
try:
    store.write({"i": 1}, bytes(100_000))
except OSError as error:
    print(error.strerror)
resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
print(store.write({"i": 2}, bytes(100_000)).name, store.newest().header, len(list(store.directory.iterdir())))
"""


def test_a_write_that_the_system_cuts_short_leaves_nothing(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", BARE + FULL, str(tmp_path)], capture_output=True, text=True, check=True
    )
    assert done.stdout == "File too large\ncheckpoint-000000000001.skc {'i': 2} 3\n"


def test_a_crash_point_counts_its_passes() -> None:
    calls = "point('a', 9); point('b', 2); print('alive', flush=True); point('b'); print('too long')"
    code = f"{BARE}\nfrom streamkernel.daemon.base.crash import point; {calls}"
    command = [sys.executable, "-c", code]
    done = subprocess.run(
        command, env={**os.environ, "STREAMKERNEL_CRASH": "b:3"}, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (-signal.SIGKILL, "alive\n")
