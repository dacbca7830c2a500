"""A client that sends HTTP requests at fixed times over connections that stay open, for the benchmark of serving.

It waits in `select` and parses no more of an answer than its length and status, so that it takes little of the cores
that it shares with what it measures.
"""

import select
import socket
import time
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

_END = b"\r\n\r\n"
_LENGTH = b"content-length: "


@dataclass
class Load:
    """What a client saw of requests of one kind."""

    wanted: int  #: the status of a good answer
    waits: list[float] = field(default_factory=list)  #: seconds of each good answer, from when its request was due
    failed: list[bytes] = field(default_factory=list)  #: the status lines of the other answers
    seconds: float = 0.0  #: from the first request of any kind to the last answer of this one

    def take(self, answer: bytes, wait: float) -> None:
        """Take note of an answer."""
        if answer.startswith(b"HTTP/1.1 %d " % self.wanted):
            self.waits.append(wait)
        else:
            self.failed.append(answer.partition(b"\r\n")[0])

    def percentile(self, share: float) -> float:
        """Return the wait, in milliseconds, that so large a share of them does not exceed."""
        ordered = sorted(self.waits)
        return 1000 * ordered[min(len(ordered) - 1, int(share * len(ordered)))] if ordered else float("nan")


class Request(NamedTuple):
    """A request."""

    due: float | None  #: when it is sent, in seconds from the beginning; None: as soon as there is a connection
    whole: bytes
    load: Load  #: takes note of its answer


def to_request(path: str, body: bytes) -> bytes:
    """Return the bytes of a request."""
    head = f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    return f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body


class Connections:
    """Connections to a port of this machine, each with one request under way at most."""

    def __init__(self, port: int, n_connections: int) -> None:
        self._all = [socket.create_connection(("127.0.0.1", port)) for _ in range(n_connections)]
        for one in self._all:
            one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.free = deque(self._all)
        self._begun: dict[socket.socket, Request] = {}
        self._parts: dict[socket.socket, bytes] = dict.fromkeys(self._all, b"")

    def send(self, asked: Request) -> None:
        """Send a request on a free connection."""
        one = self.free.popleft()
        one.sendall(asked.whole)
        self._begun[one] = asked

    def answers(self, timeout: float | None) -> Iterator[tuple[Request, bytes]]:
        """Wait for answers, and yield them with their requests."""
        for one in select.select(self._begun, (), (), timeout)[0]:
            part = one.recv(65536)
            if not part:
                raise ConnectionError("the server has closed a connection")
            self._parts[one] += part
            if _is_whole(self._parts[one]):
                answer, self._parts[one] = self._parts[one], b""
                self.free.append(one)
                yield self._begun.pop(one), answer

    @property
    def busy(self) -> bool:
        """Whether an answer is to come."""
        return bool(self._begun)

    def close(self) -> None:
        """Close all."""
        for one in self._all:
            one.close()


def _is_whole(answer: bytes) -> bool:
    head, end, body = answer.partition(_END)
    if not end:
        return False
    head = head.lower()
    at = head.index(_LENGTH) + len(_LENGTH)
    return len(body) == int(head[at:].partition(b"\r")[0])


def ask(connections: Connections, requests: Iterable[Request]) -> None:
    """Send requests, in this order, and take note of their answers in their loads.

    One that finds no free connection waits for one, and that counts.
    """
    todo = iter(requests)
    following = next(todo, None)
    began = now = time.perf_counter()
    while following is not None or connections.busy:
        while following is not None and connections.free and began + (following.due or 0.0) <= now:
            if following.due is None:
                following = following._replace(due=now - began)
            connections.send(following)
            following = next(todo, None)
        timeout = None
        if following is not None and connections.free:
            timeout = max(0.0, began + (following.due or 0.0) - time.perf_counter())
        for asked, answer in connections.answers(timeout):
            now = time.perf_counter()
            assert asked.due is not None
            asked.load.take(answer, now - began - asked.due)
            asked.load.seconds = now - began
        now = time.perf_counter()
