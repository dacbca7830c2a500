"""The process of the HTTP server, from outside: started, asked by it, and started again where it dies."""

from __future__ import annotations

import contextlib
import json
import logging
import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator

from streamkernel.connectors.os_reason import os_reason
from streamkernel.daemon.base.retry import Backoff
from streamkernel.daemon.serving.answers import Answers
from streamkernel.daemon.serving.wire import Ask, LogLine, ServerSettings, Told, frame, read_asks

__all__ = ["MOST_A_SECOND", "ServerProcess"]

_log = logging.getLogger(__name__)

# The process has a second for answers in the works, and one more for the rest.
_END_SECONDS = 3.0
# One that ran for so long did not die of how it was started.
_WELL_SECONDS = 60.0
# It asks for three things, each at most every 50 ms, and logs each kind of line once a minute.
MOST_A_SECOND = 200
# Of the environment; the rest, in which secrets may be, is not for a process that strangers talk to.
_KEPT_VARIABLES = {
    *("HOME", "LANG", "LD_LIBRARY_PATH", "PATH", "TMPDIR", "TZ", "VIRTUAL_ENV"),
    *("OPENSSL_CONF", "OPENSSL_CONF_INCLUDE", "OPENSSL_MODULES"),  # what an administrator allows
    *(() if sys.flags.ignore_environment else ("PYTHONHOME",)),
}
# It finds its modules where this process does, and nowhere else: the same version of each. Not by PYTHONPATH, which
# cannot have a folder with a colon.
_PATH_VARIABLE = "STREAMKERNEL_SYS_PATH"
# First of all it is tied to this process: to import the rest takes a while.
_PROGRAM = f"""
import json, os, sys
sys.path[:] = json.loads(os.environ["{_PATH_VARIABLE}"])
from streamkernel.daemon.base.parent_death import die_with
listening, connection, parent = map(int, sys.argv[1:])
die_with(parent)
from {__package__}.child import main
main(listening, connection)
"""


class ServerProcess:
    """HTTP server in a process of its own, so that clients, however many, take no time from a thread that learns.

    It is the same server as `BackgroundServer`. It has the listening socket, and asks this process for the metrics,
    the health and the status when a client asks it; a thread here answers.

    Parameters
    ----------
    listening
        The listening socket, closed at the end.
    settings
        What the server is given.
    answers
        What it is answered.

    Raises
    ------
    OSError
        Where no process can be started.

    """

    def __init__(self, listening: socket.socket, settings: ServerSettings, answers: Answers) -> None:
        self._listening = listening
        self._settings = settings
        self._answers = answers
        self._closing = threading.Event()
        self._lock = threading.Lock()
        self._child = _Process(listening, settings)
        self._thread = threading.Thread(target=self._run, name="http", daemon=True)
        self._thread.start()

    @property
    def pid(self) -> int:
        """The number of the process."""
        return self._child.pid

    def close(self) -> None:
        """Stop serving: requests in the works have a moment to be answered. Closing twice does nothing."""
        self._closing.set()
        with self._lock:
            self._child.end()
        self._thread.join(_END_SECONDS)
        if self._thread.is_alive():  # it is stopped, or hangs
            self._child.kill()
            self._thread.join()
        self._listening.close()

    def _run(self) -> None:
        backoff = Backoff()
        while True:
            started = time.monotonic()
            try:
                self._answer()
            except Exception as error:  # whatever it sent: the next one is answered
                _log.debug("%s: what its server asked cannot be answered", self._settings.what, exc_info=error)
            status = self._child.wait(_END_SECONDS)
            if self._closing.is_set():
                return
            if time.monotonic() - started > _WELL_SECONDS:
                backoff.succeeded()
            pause = backoff.failed()
            _log.warning(
                "the process that serves %s %s: it is started again in %.0f s",
                *(self._settings.what, _ended(status), pause),
            )
            while not self._closing.wait(pause) and not self._started_again():
                pause = backoff.failed()

    def _answer(self) -> None:
        """Answer what the process asks, until it ends."""
        with contextlib.suppress(OSError):  # it is gone
            for message in self._paced(self._child.asks()):
                if isinstance(message, LogLine):
                    _log.log(message.level, "%s", message.text)
                elif message.name in self._answers:
                    self._child.send(self._told(message))

    def _paced(self, messages: Iterator[Ask | LogLine]) -> Iterator[Ask | LogLine]:
        """Read no more messages than it has reason to send: strangers talk to it, and may have taken it over."""
        begun, n_read = time.monotonic(), 0
        for message in messages:
            now = time.monotonic()
            if now - begun > 1.0:
                begun, n_read = now, 0
            n_read += 1
            if n_read > MOST_A_SECOND:
                self._closing.wait(begun + 1.0 - now)
            yield message

    def _told(self, ask: Ask) -> Told:
        try:
            return Told(ask.name, *self._answers[ask.name](ask.version))
        except Exception as error:
            _log.debug("%s is not known", ask.name, exc_info=error)
            return Told(ask.name, ask.version, None, type(error).__name__)  # its text is for the log, which redacts

    def _started_again(self) -> bool:
        try:
            child = _Process(self._listening, self._settings)
        except OSError as error:
            _log.warning("the process that serves %s cannot be started: %s", self._settings.what, os_reason(error))
            return False
        with self._lock:
            self._child = child
            if self._closing.is_set():
                child.end()
        return True


class _Process:
    """One process, and the socket between it and this one."""

    def __init__(self, listening: socket.socket, settings: ServerSettings) -> None:
        self._socket, theirs = socket.socketpair()
        descriptors = (listening.fileno(), theirs.fileno())
        command = [sys.executable, "-P", "-s", *(["-B"] if sys.dont_write_bytecode else []), "-c", _PROGRAM]
        command += map(str, (*descriptors, os.getpid()))
        environment = {
            name: text for name, text in os.environ.items() if name in _KEPT_VARIABLES or name.startswith("LC_")
        }
        path = json.dumps([part for part in sys.path if isinstance(part, str)])
        try:
            with theirs:
                self._process = subprocess.Popen(
                    command,
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,
                    pass_fds=descriptors,
                    env=environment | {_PATH_VARIABLE: path},
                    start_new_session=True,  # Ctrl-C is for the one that ends it
                )
        except OSError:
            self._socket.close()
            raise
        self.pid = self._process.pid
        self._asks = self._socket.makefile("rb")
        with contextlib.suppress(OSError):  # it is gone already, as its end says
            self.send(settings)

    def asks(self) -> Iterator[Ask | LogLine]:
        """Read what the process asks, to its end."""
        return read_asks(self._asks)

    def send(self, value: ServerSettings | Told) -> None:
        """Send a value."""
        self._socket.sendall(frame(value))

    def end(self) -> None:
        """Tell the process to end."""
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_WR)

    def kill(self) -> None:
        """End the process."""
        self._process.kill()

    def wait(self, seconds: float) -> int:
        """Wait for the end of the process, which is killed if it takes longer, and return its status."""
        try:
            return self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            self._process.kill()
            return self._process.wait()
        finally:
            self._asks.close()
            self._socket.close()


def _ended(status: int) -> str:
    return f"was killed by signal {-status}" if status < 0 else f"ended with status {status}"
