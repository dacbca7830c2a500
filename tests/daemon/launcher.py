"""Starts daemons from a process that has everything imported and compiled: each is a process of its own, made by fork.

A kill test starts the daemon dozens of times, and the imports of a fresh interpreter cost seconds. This program reads
one job a line. `{"arguments": [...], "environment": {...}, "folder": ..., "out": ..., "err": ...}` is answered with the
number of the new process, `{"wait": number}` with its exit status, negative for a signal. When whoever started this
program is gone, so are all daemons.
"""

import json
import os
import signal
import sys
import traceback
from collections.abc import Callable
from typing import Any


def warm_up() -> None:
    from river import linear_model, preprocessing

    from streamkernel import KernelClassifier
    from streamkernel.daemon import check, cli, evaluate, runtime  # noqa: F401
    from streamkernel.daemon.http import application, protocol  # noqa: F401

    KernelClassifier(seed=1).advance([{"a": float(i)} for i in range(300)], [str(i % 2) for i in range(300)])
    preprocessing.StandardScaler() | linear_model.LogisticRegression()


def hold_clocks(patch: Callable[[Any, str, Any], None]) -> None:
    """Make what follows the clock the same in any process: how long chunks are, and when a label comes."""
    from streamkernel.daemon.labels.join import LabelJoin
    from streamkernel.daemon.stream import loop_time

    patch(loop_time, "_CHUNK_SECONDS", 1e9)
    patch(loop_time, "MOST_RECORDS", 64)
    patch(LabelJoin, "read_clock", lambda join: join.now)


def run(job: dict[str, Any]) -> int:
    from streamkernel.daemon import cli
    from streamkernel.daemon.base import crash

    os.environ.update(job["environment"])
    os.chdir(job["folder"])
    sys.path.insert(0, job["folder"])
    for number, name in ((1, "out"), (2, "err")):
        os.dup2(os.open(job[name], os.O_WRONLY | os.O_CREAT | os.O_TRUNC), number)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    if "HOLD_CLOCKS" in job["environment"]:
        hold_clocks(setattr)
    crash.arm(os.environ.get("STREAMKERNEL_CRASH", ""))  # it read the environment when it was imported
    return cli.main(job["arguments"])


def fork(job: dict[str, Any]) -> int:
    child = os.fork()
    if child:
        return child
    status = 70
    try:
        status = run(job)
        sys.stdout.flush()
        sys.stderr.flush()
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(status)


def main() -> None:
    warm_up()
    alive: set[int] = set()
    for line in sys.stdin:
        job = json.loads(line)
        if "wait" in job:
            _, ended = os.waitpid(job["wait"], 0)
            alive.discard(job["wait"])
            print(os.waitstatus_to_exitcode(ended), flush=True)
        else:
            number = fork(job)
            alive.add(number)
            print(number, flush=True)
    # A test that failed or was skipped may have left one that waits for records for ever.
    for number in alive:
        os.kill(number, signal.SIGKILL)


if __name__ == "__main__":
    main()
