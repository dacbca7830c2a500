"""Starts daemons from a process that has everything imported and compiled: each is a process of its own, made by fork.

A fresh interpreter takes seconds for its imports, and a trial of a hundred kills needs a hundred of them. One job a
line, as in `tests.daemon.launcher`; beyond that, ``"sabotage"`` lists what is to go wrong inside of the process, and
``{"poll": number}`` asks without waiting. When whoever started this program is gone, so are all daemons.
"""

from __future__ import annotations

import ctypes
import json
import os
import signal
import sys
import traceback
from typing import Any

from tests.chaos import sabotage
from tests.daemon import launcher

_PR_SET_PDEATHSIG = 1


def fork(job: dict[str, Any]) -> int:
    child = os.fork()
    if child:
        return child
    status = 70
    try:
        if sys.platform == "linux":
            ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        sabotage.apply(job["sabotage"])
        status = launcher.run(job)
        sys.stdout.flush()
        sys.stderr.flush()
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(status)


def poll(number: int) -> int | None:
    found, ended = os.waitpid(number, os.WNOHANG)
    return os.waitstatus_to_exitcode(ended) if found else None


def main() -> None:
    launcher.warm_up()
    # No client is made here: its threads would not be there in a forked process.

    alive: set[int] = set()
    for line in sys.stdin:
        job = json.loads(line)
        if "poll" in job:
            status = poll(job["poll"])
            if status is not None:
                alive.discard(job["poll"])
            answer = status
        else:
            answer = fork(job)
            alive.add(answer)
        print(json.dumps(answer), flush=True)
    for number in alive:
        os.kill(number, signal.SIGKILL)


if __name__ == "__main__":
    main()
