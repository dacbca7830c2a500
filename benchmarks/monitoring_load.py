"""Clients of a daemon's metrics, for the benchmark of monitoring: scrapes, a page that polls, connections that do harm.

    python -m benchmarks.monitoring_load PORT [--path PATH --every SECONDS --count N] [--half-open N] [--slow N]

To loopback only, in a process of its own, until its standard input is closed or so many seconds have passed; then one
line of JSON: the seconds that answers, and refusals, took from before the connection was asked for to their last byte.
"""

import argparse
import asyncio
import json
import math
import random
import sys
import time
from collections import defaultdict
from collections.abc import Coroutine
from typing import Any

HOST = "127.0.0.1"
# A client that was refused or turned away comes again: about as often as the server ends a connection that is idle.
PAUSE_SECONDS = 5.0
SLOW_REQUEST = b"GET /metrics HTTP/1.1\r\nHost: localhost\r\nX: "


class Clients:
    """The clients of one server.

    Attributes
    ----------
    took
        Seconds by what was answered: ``"answered"``, ``"refused"``, ``"failed"``.
    most
        The most connections that were open at once.

    """

    def __init__(self, port: int) -> None:
        self.port = port
        self.took: dict[str, list[float]] = defaultdict(list)
        self.most = self._open = 0
        self._draw = random.Random(1)

    async def poll(self, path: str, every: float, count: float) -> None:
        """Ask for a path, over a new connection each time, at random times so many seconds apart on average."""
        request = f"GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n".encode()
        while count > 0:
            await asyncio.sleep(every * self._draw.uniform(0.5, 1.5))
            await self._ask(request)
            count -= 1

    async def _ask(self, request: bytes) -> None:
        start = time.perf_counter()
        try:
            reader, writer = await asyncio.open_connection(HOST, self.port)
            try:
                writer.write(request)
                answer = await reader.read(-1)
            finally:
                writer.close()
        except OSError:  # the run has ended
            answer = b""
        ok = answer.startswith(b"HTTP/1.1 200 ") and b"\r\n\r\n" in answer
        self.took["answered" if ok else "failed"].append(time.perf_counter() - start)

    async def hold(self, slow: bool) -> None:
        """Hold a connection and send nothing, or a byte a second, until the server ends it; then come again."""
        await asyncio.sleep(self._draw.uniform(0, 1))
        while True:
            start = time.perf_counter()
            try:
                reader, writer = await asyncio.open_connection(HOST, self.port)
            except OSError:
                await asyncio.sleep(PAUSE_SECONDS)
                continue
            self._open += 1
            dripping = asyncio.create_task(_drip(writer)) if slow else None
            try:
                answer = await reader.read(-1)
            except OSError:
                answer = b""
            finally:
                self._open -= 1
                if dripping is not None:
                    dripping.cancel()
                writer.close()
            if answer.startswith(b"HTTP/1.1 503 "):
                self.took["refused"].append(time.perf_counter() - start)
            if time.perf_counter() - start < PAUSE_SECONDS / 2:  # also where the refusal was lost with a reset
                await asyncio.sleep(PAUSE_SECONDS * self._draw.uniform(0.8, 1.2))

    async def wait_for_refusals(self, count: int) -> None:
        """Wait until so many clients were refused."""
        while len(self.took["refused"]) < count:
            await asyncio.sleep(0.01)

    async def watch(self) -> None:
        """Note how many connections are open, those that were refused left out as far as that is known."""
        while True:
            await asyncio.sleep(0.1)
            self.most = max(self.most, self._open)


async def _drip(writer: asyncio.StreamWriter) -> None:
    writer.write(SLOW_REQUEST)
    while True:
        await asyncio.sleep(1.0)
        writer.write(b"x")


async def _closed() -> None:
    """Wait until the standard input is closed."""
    reader = asyncio.StreamReader()
    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    await reader.read(-1)


async def load(options: argparse.Namespace) -> dict[str, Any]:
    """Be the clients that are asked for until this is to end, and return what they saw."""
    clients = Clients(options.port)
    at_work: list[Coroutine[Any, Any, None]] = [clients.watch()]
    if options.path:
        at_work.append(clients.poll(options.path, options.every, options.count or math.inf))
    at_work += [clients.hold(slow=False) for _ in range(options.half_open)]
    at_work += [clients.hold(slow=True) for _ in range(options.slow)]
    tasks = [asyncio.create_task(one) for one in at_work]
    closed = asyncio.create_task(_closed())
    ends = [closed, *([tasks[1]] if options.count else [])]
    if options.until_refused:
        ends.append(asyncio.create_task(clients.wait_for_refusals(options.until_refused)))
        tasks.append(ends[-1])
    await asyncio.wait(ends, timeout=options.seconds, return_when=asyncio.FIRST_COMPLETED)
    took = {kind: list(seconds) for kind, seconds in clients.took.items()}
    for task in [*tasks, closed]:
        task.cancel()
    await asyncio.gather(*tasks, closed, return_exceptions=True)
    return {"took": took, "most": clients.most}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("port", type=int)
    parser.add_argument("--path", default="")
    parser.add_argument("--every", type=float, default=1.0)
    parser.add_argument("--count", type=int, default=0, help="how often it is asked for; 0: until the end")
    parser.add_argument("--half-open", type=int, default=0)
    parser.add_argument("--slow", type=int, default=0)
    parser.add_argument("--until-refused", type=int, default=0, help="end once so many were refused; 0: go on")
    parser.add_argument("--seconds", type=float, default=600.0)
    json.dump(asyncio.run(load(parser.parse_args())), sys.stdout)


if __name__ == "__main__":
    main()
