"""Raw bytes to the status server of a running daemon."""

import contextlib
import os
import random
import re
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

from benchmarks.fuzz.mutation import mutated
from benchmarks.fuzz.process_clock import ProcessClock
from benchmarks.fuzz.target import Target, configured

_MAIN = "import sys; from streamkernel.daemon.cli import main; sys.exit(main())"
_REQUESTS = (
    b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n",
    b"GET /metrics?name[]=streamkernel_build_info HTTP/1.1\r\nHost: localhost\r\nAccept-Encoding: gzip\r\n\r\n",
    b"GET / HTTP/1.0\r\n\r\n",
    b"POST /healthz HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\n\r\nhello",
    b"GET /readyz HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
    b"GET /metrics HTTP/1.1\r\nHost: localhost\r\nAuthorization: Basic eDp5\r\n\r\n",
    b"GET /" + 5000 * b"a" + b" HTTP/1.1\r\nHost: localhost\r\n\r\n",
    b"GET / HTTP/1.1\r\n" + b"".join(b"X-%d: y\r\n" % n for n in range(300)) + b"\r\n",
)
_SECONDS = 5.0
_STOP_SECONDS = 10.0


class Http(Target):
    """Requests with odd bytes, cut short, sent in pieces or left alone; after each the probe must answer."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        folder.mkdir(parents=True)
        (folder / "stream.jsonl").write_text('{"a": 1, "y": "p"}\n')
        config = configured(
            folder / "config.yaml",
            source={"kind": "jsonl", "path": str(folder / "stream.jsonl"), "target": "y", "follow": True},
            model=["river.naive_bayes.GaussianNB"],
            metrics={"port": 0},
        )
        log = folder / "log"
        with log.open("wb") as file:
            command = [sys.executable, "-c", _MAIN, "run", str(config)]
            self._daemon = subprocess.Popen(command, stdout=file, stderr=file, cwd=folder)
        port = None
        while port is None and self._daemon.poll() is None:
            time.sleep(0.05)
            port = re.search(r"serving metrics at http://127\.0\.0\.1:(\d+)", log.read_text())
        if port is None:
            raise RuntimeError(f"the daemon ended: {log.read_text()}")
        self._address = "127.0.0.1", int(port[1])
        self._idle: list[socket.socket] = []

    @property
    def resident_mb(self) -> float:
        pages = int(Path(f"/proc/{self._daemon.pid}/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE") / 2**20

    def case(self, draw: random.Random) -> str | None:
        data = draw.choice(_REQUESTS)
        if draw.random() < 0.8:
            data = mutated(draw, data)
        with contextlib.suppress(OSError):  # it may hang up on what is no request
            self._send(draw, data)
        if self._daemon.poll() is not None:
            return f"the daemon ended with status {self._daemon.returncode}"
        return self._probe()

    def close(self) -> None:
        for connection in self._idle:
            connection.close()
        self._daemon.send_signal(signal.SIGTERM)
        spent = ProcessClock(self._daemon.pid)
        while self._daemon.poll() is None:
            if spent.seconds > _STOP_SECONDS:
                self._daemon.kill()
                self._daemon.wait()
                raise RuntimeError(f"the daemon did not end within {_STOP_SECONDS:g} s of SIGTERM")
            time.sleep(0.05)

    def _send(self, draw: random.Random, data: bytes) -> None:
        connection = socket.create_connection(self._address, timeout=0.2)
        cut = draw.randrange(len(data) + 1)
        for piece in (data[:cut], data[cut:]) if draw.random() < 0.3 else (data,):
            connection.sendall(piece)
        if draw.random() < 0.1:
            # Some stay open and say nothing more, but not so many that all the places are theirs.
            self._idle.append(connection)
            if len(self._idle) > 8:
                self._idle.pop(0).close()
            return
        with contextlib.closing(connection):
            while draw.random() < 0.9 and connection.recv(65_536):
                pass

    def _probe(self) -> str | None:
        spent = ProcessClock(self._daemon.pid)
        said = "nothing"
        while spent.seconds < _SECONDS:
            try:
                with socket.create_connection(self._address, timeout=_SECONDS) as connection:
                    connection.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
                    said = connection.recv(100).decode("latin-1")
                if " 200 " in said.split("\r\n")[0]:
                    return None
            except OSError as error:
                said = str(error)
            time.sleep(0.05)
        return f"the probe was not answered within {_SECONDS:g} s, but with {said!r:.100}"
