"""Runs a command and kills it when whoever started this program is gone, however that came about.

The owner holds the other end of standard input, which the kernel closes even if the owner is killed. The parent-death
signal alone would not do: it belongs to a thread, so a broker started by a short-lived thread would die with it.
The first line on standard output is the number of the command's process; its exit status is this program's.
"""

import ctypes
import signal
import subprocess
import sys
import threading

_PR_SET_PDEATHSIG = 1


def die_with_the_guard() -> None:
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def kill_without_owner(command: "subprocess.Popen[bytes]") -> None:
    sys.stdin.read()
    command.kill()


def main() -> int:
    command = subprocess.Popen(
        sys.argv[1:], stdin=subprocess.DEVNULL, stdout=sys.stderr.fileno(), preexec_fn=die_with_the_guard
    )
    print(command.pid, flush=True)
    threading.Thread(target=kill_without_owner, args=(command,), daemon=True).start()
    return command.wait()


if __name__ == "__main__":
    sys.exit(main())
