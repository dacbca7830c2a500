"""The HTTP server's thread: an event loop that serves an ASGI application until it is told to stop."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import ssl
import threading
from typing import Any

from starlette.types import ASGIApp
from uvicorn import Config
from uvicorn.server import ServerState

from streamkernel.daemon.serving.limits import HttpLimits
from streamkernel.daemon.serving.listener import Listener
from streamkernel.daemon.serving.log import limited_logger
from streamkernel.daemon.serving.protocol import BoundedProtocol

__all__ = ["BackgroundServer"]

_log = limited_logger(__name__)


class BackgroundServer:
    """HTTP server in a thread of its own, on a listening socket that it closes at the end; with a context, over TLS.

    It is uvicorn's protocol without uvicorn's server, which bounds neither connections nor TLS handshakes, takes the
    signals for itself and looks every tenth of a second whether it is to stop.
    """

    def __init__(
        self,
        application: ASGIApp,
        listening: socket.socket,
        context: ssl.SSLContext | None,
        limits: HttpLimits,
        what: str = "the metrics",
    ) -> None:
        self._limits = limits
        self._what = what
        self._listening = listening
        self._context = context
        self._config = Config(
            application,
            http=BoundedProtocol,
            ws="none",
            lifespan="off",
            interface="asgi3",
            workers=1,
            log_config=None,
            access_log=False,
            proxy_headers=False,
            server_header=False,
            date_header=False,
            # Kept longer than ours, which ends the connection.
            timeout_keep_alive=int(limits.receive_seconds) + 1,
        )
        self._config.load()  # here, where a failure is raised to whoever starts the server
        self._loop = asyncio.new_event_loop()
        self._loop.set_exception_handler(self._note)
        self._stopping = asyncio.Event()
        self._thread = threading.Thread(target=self._run, name="http", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Stop serving: requests in the works have a moment to be answered. Closing twice does nothing."""
        if self._thread.is_alive():
            with contextlib.suppress(RuntimeError):  # it has ended in between
                self._loop.call_soon_threadsafe(self._stopping.set)
            self._thread.join()

    def _run(self) -> None:
        try:
            self._loop.run_until_complete(self._serve())
            self._loop.run_until_complete(self._loop.shutdown_asyncgens())
        finally:
            self._listening.close()
            self._loop.close()

    async def _serve(self) -> None:
        state = ServerState()
        listener = Listener(
            self._listening,
            lambda ended: BoundedProtocol(self._config, state, self._limits, self._loop, ended),
            self._context,
            self._limits,
            self._what,
        )
        listener.start()
        await self._stopping.wait()
        await listener.stop()
        for connection in list(state.connections):
            connection.shutdown()
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(listener.drained(), self._limits.stop_seconds)
        for connection in list(state.connections):
            connection.transport.abort()
        for task in list(state.tasks):
            task.cancel()
        await asyncio.gather(*state.tasks, return_exceptions=True)
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(listener.drained(), self._limits.stop_seconds)

    def _note(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:  # noqa: ARG002
        _log.warning("the server of %s: %s", self._what, context["message"], exc_info=context.get("exception"))
