"""A daemon under attack by HTTP goes on: it learns, writes its checkpoints and answers who asks properly."""

from __future__ import annotations

import contextlib
import re
import resource
import socket
import sys
from pathlib import Path

import pytest

from tests.daemon.conftest import Home, Launcher, Running, write_stream
from tests.daemon.raw_http import connect, exchange, status
from tests.daemon.raw_http import get as request

MOST = 20
FLOOD = 2000


def started(home: Home, launcher: Launcher, **metrics: object) -> tuple[Running, int]:
    home.configure(
        source={"kind": "csv", "path": "stream.csv", "target": "y", "follow": True},
        checkpoint={"directory": "out/state", "every_records": 100},
        metrics={"port": 0, **metrics},
    )
    daemon = launcher.start(home, "run", "config.yaml")
    port = int(daemon.wait_for(r"serving metrics at (\S+:(\d+)/)metrics and the status page at \1\n")[2])
    daemon.wait_for("reading csv file")
    return daemon, port


def append(home: Home, records: int) -> None:
    with (home.folder / "stream.csv").open("a") as stream:
        stream.write("".join(f"{number % 7},{number % 3},red,yes\n" for number in range(records)))


def consumed(connection: socket.socket) -> float:
    """How many records it has taken, asked over a connection that stays open."""
    connection.sendall(request().replace(b"Connection: close\r\n", b""))
    answer = b""
    while True:
        part = connection.recv(1 << 16)
        assert part, answer
        answer += part
        head, _, body = answer.partition(b"\r\n\r\n")
        length = re.search(rb"content-length: (\d+)", head)
        if length is not None and len(body) == int(length[1]):
            break
    found = re.search(rb"^streamkernel_records_consumed_total (.*)$", answer, re.MULTILINE)
    assert found, answer
    return float(found[1])


def open_files(pid: int) -> int:
    """Return how many files a process has open, with those of the process of its server."""
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return sum(len(list(Path(f"/proc/{one}/fd").iterdir())) for one in (pid, *children))


@pytest.mark.skipif(sys.platform != "linux", reason="counts open files by /proc")
def test_thousands_of_connections_take_few_files(home: Home, launcher: Launcher) -> None:
    write_stream(home.folder / "stream.csv", 100, bad=False)
    daemon, port = started(home, launcher, max_connections=MOST)
    for _ in range(30):
        assert status(exchange(port, request(host="evil.example"))) == 421
        assert status(exchange(port, request("/", "X: " + "y" * 20_000))) == 431
    before = open_files(daemon.pid)
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, max(soft, FLOOD + 500)), hard))
    with contextlib.ExitStack() as stack:
        stack.callback(resource.setrlimit, resource.RLIMIT_NOFILE, (soft, hard))
        honest = stack.enter_context(connect(port))
        while consumed(honest) < 100:
            pass
        for number in range(FLOOD):
            attacker = stack.enter_context(connect(port))
            with contextlib.suppress(OSError):
                attacker.send((b"", b"GET / HTTP/1.1\r\n", b"\x16\x03\x01")[number % 3])
            if number % 100 == 0:
                assert consumed(honest) == 100
        seen = open_files(daemon.pid)
        append(home, 1000)
        while consumed(honest) < 1100:
            pass
    daemon.signal(15)
    ended = daemon.wait()
    assert ended.returncode == 0, ended.stderr
    assert seen <= before + MOST + 5
    assert home.header()["source"]["account"]["consumed"] == 1100
    assert "could not be written" not in ended.stderr
    # Thousands of refusals are few lines.
    assert 1 <= ended.stderr.count(f"more than {MOST} connections") <= 3
    assert ended.stderr.count("requests for the host evil.example are refused") == 1
    assert len(ended.stderr.splitlines()) < 14
