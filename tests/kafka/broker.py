"""A real Apache Kafka broker in a process of its own."""

from __future__ import annotations

import base64
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import uuid
from pathlib import Path
from types import TracebackType
from typing import Self

from tests.kafka.cluster import Cluster
from tests.kafka.distribution import Distribution, distribution, write_properties
from tests.kafka.listeners import address, free_listeners, server_properties

_GUARD = Path(__file__).with_name("guard.py")
_SECONDS = 120
"""How long anything may take: only a machine that hangs gets there."""


class BrokerError(Exception):
    """The broker did not do as it was told; the message ends with what it logged."""


class Broker(Cluster):
    """One node (KRaft) on the loopback interface, whose data lives as long as this object.

    A context manager that starts it and, at the end, leaves nothing behind. It dies with the process that started it,
    even if that is killed.

    Parameters
    ----------
    folder
        Where it keeps its files, removed at the end; a temporary one by default.
    archive
        Java's option for the archive of loaded classes; its use by default.
    installed
        The distribution; found or made by default.
    detour
        A port that somebody passes on to `behind`: one more listener, which sends its clients there.
    properties
        Settings of the server, ``_`` for ``.``: ``message_max_bytes=2000``.

    Raises
    ------
    UnavailableError
        When there is no Java, no Maven or no jars.

    """

    def __init__(
        self,
        folder: Path | None = None,
        *,
        archive: str | None = None,
        installed: Distribution | None = None,
        detour: int | None = None,
        **properties: object,
    ) -> None:
        self._installed = installed or distribution()
        self._at = free_listeners()
        super().__init__(address(self._at.plaintext))
        self._archive = archive
        self._process: subprocess.Popen[bytes] | None = None
        self._lifeline = -1
        self._pid = 0
        self._folder = folder or Path(tempfile.mkdtemp(prefix="kafka-"))
        self._data = self._folder / "data"
        self._format()
        own = {key.replace("_", "."): value for key, value in properties.items()}
        write_properties(
            self._folder / "server.properties",
            {**server_properties(self._at, self._data, self._installed.keystore, detour), **own},
        )

    def _format(self) -> None:
        # As `StorageTool format` would, without a second for a virtual machine of its own.
        self._data.mkdir(parents=True)
        shutil.copy(self._installed.formatted, self._data)
        identities = {"cluster.id": _new_id(), "directory.id": _new_id()}
        write_properties(self._data / "meta.properties", {"version": 1, "node.id": 1, **identities})

    @property
    def sasl(self) -> str:
        """The address that asks for user and password (PLAIN or SCRAM-SHA-256), in the clear."""
        return address(self._at.sasl)

    @property
    def tls(self) -> str:
        """The address that speaks TLS and asks for nothing."""
        return address(self._at.tls)

    @property
    def behind(self) -> int:
        """The port of the listener whose clients are sent to the port `detour`."""
        return self._at.detour

    @property
    def ca(self) -> Path:
        """The authority that signed the broker's certificate."""
        return self._installed.ca

    @property
    def log(self) -> str:
        """What it said, in all its lives: warnings and worse."""
        path = self._folder / "broker.log"
        return path.read_text(errors="replace") if path.exists() else ""

    @property
    def pid(self) -> int:
        """The number of the process; not of use when it is not alive."""
        return self._pid

    @property
    def alive(self) -> bool:
        """Whether the process runs, or is paused."""
        return self._process is not None and self._process.poll() is None

    def log_directory(self, topic: str, partition: int) -> Path:
        """Tell where the segments of a partition are."""
        return self._data / f"{topic}-{partition}"

    def start(self) -> None:
        """Start it, on the data it had, and wait until it serves.

        Raises
        ------
        BrokerError
            When it ends instead.

        """
        assert not self.alive, "the broker is running"
        command = self._installed.kafka("kafka.Kafka", self._folder / "server.properties", archive=self._archive)
        self._fifo.unlink(missing_ok=True)
        os.mkfifo(self._fifo)
        held = os.open(self._fifo, os.O_RDONLY | os.O_NONBLOCK)  # a writer needs a reader
        self.hold()
        os.set_blocking(held, True)
        with (self._folder / "broker.log").open("ab") as log:
            guard = subprocess.Popen(
                [sys.executable, "-I", "-S", _GUARD, *command],
                cwd=self._folder,
                stdin=held,
                stdout=subprocess.PIPE,
                stderr=log,
                start_new_session=True,  # Ctrl-C is for the tests; they stop it when they are done
            )
        os.close(held)
        assert guard.stdout is not None
        number = guard.stdout.readline()
        if not number:
            guard.communicate()
            raise BrokerError(f"the broker could not be started:\n{self.log[-4000:]}")
        # Both at once: a number that is not the process's would send the signals elsewhere.
        self._process, self._pid = guard, int(number)
        try:
            self._wait_until_ready()
        except BaseException:
            self.kill()
            raise

    @property
    def _fifo(self) -> Path:
        return self._folder / "lifeline"

    def hold(self) -> None:
        """Keep the broker alive until `release`: it ends when no process holds it any more.

        Raises
        ------
        OSError
            When it has ended already.

        """
        self._lifeline = os.open(self._fifo, os.O_WRONLY | os.O_NONBLOCK | os.O_CLOEXEC)

    def release(self) -> None:
        """Stop keeping the broker alive."""
        if self._lifeline >= 0:
            os.close(self._lifeline)
            self._lifeline = -1

    def __getstate__(self) -> dict[str, object]:
        """Leave out what belongs to this process: another one may `hold` a copy."""
        return {**self.__dict__, "_process": None, "_lifeline": -1}

    def _wait_until_ready(self) -> None:
        deadline = time.monotonic() + _SECONDS
        while not (self._listens() and self._serves()):
            if not self.alive:
                raise BrokerError(f"the broker ended while it started:\n{self.log[-4000:]}")
            if time.monotonic() > deadline:
                raise BrokerError(f"the broker was not ready after {_SECONDS} s:\n{self.log[-4000:]}")
            time.sleep(0.02)

    def _listens(self) -> bool:
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", self._at.plaintext)) == 0

    def _serves(self) -> bool:
        with self.admin() as admin:
            return any(not node["is_fenced"] for node in admin.describe_cluster()["brokers"])

    def stop(self) -> None:
        """Let it end in good order (SIGTERM)."""
        self.resume()
        self._end(signal.SIGTERM)

    def kill(self) -> None:
        """Kill it (SIGKILL), also while it is paused."""
        self._end(signal.SIGKILL)

    def pause(self) -> None:
        """Freeze it (SIGSTOP): its connections stay open and nobody answers."""
        self._signal(signal.SIGSTOP)
        # On a busy machine its threads stop one after the other, and until then they answer.
        deadline = time.monotonic() + _SECONDS
        while self.alive and not self._frozen() and time.monotonic() < deadline:
            time.sleep(0.01)

    def _frozen(self) -> bool:
        """Tell whether all of its threads stand still, where the system says so."""
        try:
            stats = [task.read_text() for task in Path(f"/proc/{self._pid}/task").glob("*/stat")]
        except OSError:  # a thread has just ended
            return False
        return all(stat.rpartition(")")[2].split()[0] == "T" for stat in stats)

    def resume(self) -> None:
        """Let it go on after `pause`; nothing otherwise."""
        self._signal(signal.SIGCONT)

    def close(self) -> None:
        """Kill it and remove its files."""
        self.kill()
        shutil.rmtree(self._folder, ignore_errors=True)

    def _signal(self, number: signal.Signals) -> None:
        if self.alive:
            os.kill(self._pid, number)

    def _end(self, number: signal.Signals) -> None:
        self._signal(number)
        if self._process is not None:
            self._process.communicate(timeout=_SECONDS)
            self._process = None
        self.release()

    def __enter__(self) -> Self:
        try:
            self.start()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _new_id() -> str:
    return base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
