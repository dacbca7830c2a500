"""The routes of the HTTP server: /metrics for Prometheus, probes for a supervisor, a page and its JSON for people."""

from __future__ import annotations

import asyncio
import math
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from http import HTTPStatus
from typing import TypeVar

from prometheus_client import CollectorRegistry
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import HTMLResponse, PlainTextResponse, Response
from starlette.routing import Route

from streamkernel.daemon.base.health import Health, NoStatusError
from streamkernel.daemon.config.endpoints import EndpointConfig
from streamkernel.daemon.http.published import PublishedMetrics, answer_scrape
from streamkernel.daemon.http.security import Hosts, SecurityMiddleware

__all__ = ["make_application", "status_query"]

T = TypeVar("T")

_THREADS = 4
_LONGEST_NUMBER = 32
_MOST_PARTITION = 2**31


def make_application(
    settings: EndpointConfig,
    metrics: CollectorRegistry | PublishedMetrics,
    health: Health,
    routes: Sequence[Route] = (),
    section: str = "metrics",
    max_body_bytes: int = 0,
) -> Starlette:
    """Return the ASGI application that serves metrics, the health and further routes to whom the settings let in.

    The settings are those of a section of the configuration, which refusals name.
    """
    answers = _Answers(metrics, health)
    own = {"/": answers.page, "/metrics": answers.metrics, "/healthz": answers.healthz, "/readyz": answers.readyz}
    if health.status is not None:
        own["/api/status"] = answers.status
    every = [*(Route(path, answer) for path, answer in own.items()), *routes]
    *most, last = (one.path for one in every)

    async def refuse(request: Request, error: Exception) -> Response:  # noqa: ARG001
        assert isinstance(error, HTTPException)
        text, headers = error.detail, dict(error.headers or {})
        if error.status_code == HTTPStatus.NOT_FOUND:
            text = f"not found: {', '.join(most)} and {last} are here"
        elif allowed := headers.get("Allow"):
            headers["Allow"] = ", ".join(sorted(allowed.split(", ")))
            text = f"only {headers['Allow']}"
        return _text(HTTPStatus(error.status_code), text, headers)

    hosts = Hosts([settings.host, *settings.allowed_hosts])
    security = Middleware(SecurityMiddleware, hosts=hosts, basic_auth=settings.basic_auth, section=section)
    application = Starlette(
        routes=every,
        middleware=[security],
        exception_handlers={HTTPException: refuse},
        max_body_size=max_body_bytes,
    )
    application.router.redirect_slashes = False
    return application


class _Answers:
    """Answers requests; what may take long, in a thread: a member of a group asks its partitions."""

    def __init__(self, metrics: CollectorRegistry | PublishedMetrics, health: Health) -> None:
        self._metrics = metrics
        self._health = health
        # Apart, so that a slow scrape holds up no probe, and no probe, which anybody may ask for, a scrape.
        self._scrapes, self._probes = asyncio.Semaphore(_THREADS), asyncio.Semaphore(_THREADS)

    async def page(self, request: Request) -> Response:  # noqa: ARG002
        policy = {"Content-Security-Policy": self._health.policy} if self._health.policy else None
        return HTMLResponse(_encoded(await self._run(lambda: self._health.page())), headers=policy)

    async def status(self, request: Request) -> Response:
        status = self._health.status
        assert status is not None
        try:
            since, partition = status_query(request.query_params)
            body = await self._run(lambda: status(since, partition))
        except ValueError as error:
            return _text(HTTPStatus.BAD_REQUEST, str(error))
        except NoStatusError as error:
            return _text(HTTPStatus.SERVICE_UNAVAILABLE, str(error))
        if body is None:
            return _text(HTTPStatus.NOT_FOUND, f"not found: partition {partition} is not held here")
        return Response(body, media_type="application/json")

    async def metrics(self, request: Request) -> Response:
        query, fields = str(request.url.query), request.headers
        accept, encoding = fields.get("accept", ""), fields.get("accept-encoding", "")
        body, headers = await self._run(lambda: answer_scrape(self._metrics, query, accept, encoding))
        return Response(body, headers=headers)

    async def _run(self, function: Callable[[], T]) -> T:
        """Run what makes an answer; where all was published, here: each thread more waits for the one that learns."""
        if isinstance(self._metrics, PublishedMetrics):
            return function()
        return await _in_thread(self._scrapes, function)

    async def healthz(self, request: Request) -> Response:  # noqa: ARG002
        trouble = await _in_thread(self._probes, lambda: self._health.trouble())
        return _text(HTTPStatus.SERVICE_UNAVAILABLE if trouble else HTTPStatus.OK, trouble or "ok")

    async def readyz(self, request: Request) -> Response:  # noqa: ARG002
        obstacle = await _in_thread(self._probes, lambda: self._health.unready())
        return _text(HTTPStatus.SERVICE_UNAVAILABLE if obstacle else HTTPStatus.OK, obstacle or "ready")


async def _in_thread(places: asyncio.Semaphore, function: Callable[[], T]) -> T:
    """Run a function in a daemon thread.

    The end of the process joins the threads of anyio and of `concurrent.futures`, so one scrape that hangs would hold
    up the end.
    """
    answer: Future[T] = Future()
    answer.set_running_or_notify_cancel()  # so that nobody cancels it, but only the wait for it

    def work() -> None:
        try:
            answer.set_result(function())
        except Exception as error:
            answer.set_exception(error)

    async with places:
        threading.Thread(target=work, name="answer", daemon=True).start()
        return await asyncio.wrap_future(answer)


def status_query(query: Mapping[str, str]) -> tuple[float, int | None]:
    """Read `since`, by default 0, and `partition`, by default None; a ValueError says what is wrong."""
    since, partition = query.get("since", "0"), query.get("partition")
    try:
        number = float(since) if len(since) <= _LONGEST_NUMBER else math.nan
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        raise ValueError("since must be a time in seconds since 1970")
    if partition is None:
        return number, None
    digits = partition.isascii() and partition.isdigit() and len(partition) <= _LONGEST_NUMBER
    if not digits or int(partition) >= _MOST_PARTITION:
        raise ValueError("partition must be the number of a partition")
    return number, int(partition)


def _text(status: HTTPStatus, text: str, headers: Mapping[str, str] | None = None) -> Response:
    return PlainTextResponse(_encoded(f"{text}\n"), status, headers)


def _encoded(text: str) -> bytes:
    """Return a text in UTF-8, also where it names a file whose name is not."""
    return text.encode("utf-8", "backslashreplace")
