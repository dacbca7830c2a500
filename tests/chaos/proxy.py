"""A network that fails when it is told to: everything between a client and a port goes through here."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import struct
import threading
from collections.abc import Coroutine
from typing import Any, Self

from tests.chaos.requests import END_TXN, Requests
from tests.ports import reserved_port

_PIECE = 1 << 16
_RESET = struct.pack("ii", 1, 0)
"""Of SO_LINGER: a socket that is closed ends its connection at once, by RST."""


class _Connection:
    """One connection: its two ends, and whether what it carries still arrives."""

    def __init__(self, client: asyncio.StreamWriter) -> None:
        self.writers = [client]
        self.requests = Requests()
        self.dead = False
        self.held = self.answerless = False

    def cut(self) -> None:
        for writer in self.writers:
            with contextlib.suppress(OSError):
                writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
            writer.transport.abort()


class Proxy:
    """Passes connections to one of its ports on to another port of this machine, well or badly.

    A context manager, on a thread of its own. It passes everything until it is told otherwise, and from `flow` on."""

    def __init__(self) -> None:
        self.port = reserved_port()
        self.target = 0
        self.passed: list[bytes] = []
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="proxy", daemon=True)
        self._connections: set[_Connection] = set()
        self._tasks: set[asyncio.Task[Any]] = set()
        self._server: asyncio.Server | None = None
        self._flowing = asyncio.Event()
        self._losing = False
        self._delay = 0.0
        self._lose_answer = self._hold_answer = False
        self._released = asyncio.Event()

    def __enter__(self) -> Self:
        self._thread.start()
        self.flow()
        return self

    def __exit__(self, *_: object) -> None:
        self._do(self._end())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    @property
    def connections(self) -> int:
        """How many are open."""
        return len(self._connections)

    def flow(self) -> None:
        """Let everything pass: what waited goes on, what was lost stays lost."""
        self._do(self._set(flowing=True))

    def stall(self) -> None:
        """Let nothing pass: connections stay open, what is sent waits."""
        self._do(self._set(flowing=False))

    def delay(self, seconds: float) -> None:
        """Hand each piece of data on after some seconds."""
        self._do(self._set(flowing=True, delay=seconds))

    def lose(self) -> None:
        """Throw away what is sent: connections stay open and are dead, those made meanwhile too, also after `flow`."""
        self._do(self._set(flowing=True, losing=True))

    def refuse(self) -> None:
        """Reset all connections, and listen no more."""
        self._do(self._refuse())

    def cut(self) -> None:
        """Reset all connections; new ones pass."""
        self._do(self._cut())

    def lose_answer(self) -> None:
        """Lose the answer to the next end of a transaction, and the connection with it."""
        self._lose_answer = True

    def hold_answer(self) -> None:
        """Hold the answer to the next end of a transaction back, until `flow`."""
        self._hold_answer = True

    def _do(self, work: Coroutine[Any, Any, None]) -> None:
        asyncio.run_coroutine_threadsafe(work, self._loop).result(timeout=60)

    async def _set(self, *, flowing: bool, losing: bool = False, delay: float = 0.0) -> None:
        if self._server is None:
            self._server = await asyncio.start_server(self._accept, "127.0.0.1", self.port)
        self._delay, self._losing = delay, losing
        self._lose_answer = self._hold_answer = False
        self._released.set()
        for connection in self._connections:
            connection.dead |= losing
        if flowing:
            self._flowing.set()
        else:
            self._flowing.clear()

    async def _cut(self) -> None:
        for connection in self._connections:
            connection.cut()

    async def _refuse(self) -> None:
        if self._server is not None:
            self._server.close()
            self._server = None
        await self._cut()

    async def _end(self) -> None:
        await self._refuse()
        # Among them those of asyncio's own, for connections that it has accepted and not yet handed over.
        rest = asyncio.all_tasks() - {asyncio.current_task()}
        for task in rest:
            task.cancel()
        await asyncio.gather(*rest, return_exceptions=True)
        await asyncio.sleep(0)  # transports that were aborted close their sockets in the next turn

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        connection = _Connection(writer)
        connection.dead = self._losing
        self._connections.add(connection)
        try:
            await self._flowing.wait()
            beyond, back = await asyncio.open_connection("127.0.0.1", self.target)
            connection.writers.append(back)
            pumps = [self._pump(connection, reader, back, requests=True), self._pump(connection, beyond, writer)]
            # Whichever side ends first, the other hears of it.
            done, rest = await asyncio.wait(map(asyncio.ensure_future, pumps), return_when=asyncio.FIRST_COMPLETED)
            for one in rest:
                one.cancel()
            await asyncio.gather(*done, *rest, return_exceptions=True)
        except OSError:
            pass  # nobody is behind: the client's connection ends, as with any proxy
        finally:
            for end in connection.writers:
                end.close()  # what was taken is still delivered
                with contextlib.suppress(OSError):
                    await end.wait_closed()
            self._connections.discard(connection)
            self._tasks.discard(task)

    def _look(self, connection: _Connection, data: bytes) -> None:
        """Note the ends of transactions among what a client sends, and what is to become of the answers."""
        for request in connection.requests.find(END_TXN, data):
            self.passed.append(request)
            if self._lose_answer:
                self._lose_answer, connection.answerless = False, True
            if self._hold_answer:
                self._hold_answer, connection.held = False, True
                self._released.clear()

    async def _pump(
        self,
        connection: _Connection,
        source: asyncio.StreamReader,
        sink: asyncio.StreamWriter,
        requests: bool = False,
    ) -> None:
        while data := await source.read(_PIECE):
            await self._flowing.wait()
            if requests:
                self._look(connection, data)
            elif connection.answerless:
                connection.cut()
                return
            elif connection.held:
                await self._released.wait()
                connection.held = False
            if connection.dead:
                continue
            if self._delay:
                await asyncio.sleep(self._delay)
            sink.write(data)
            await sink.drain()
