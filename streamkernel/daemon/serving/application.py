"""The routes of the HTTP server: /metrics for Prometheus, probes for a supervisor, a page and its JSON for people."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from http import HTTPStatus
from typing import TypeVar

from prometheus_client import CollectorRegistry, make_wsgi_app
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import HTMLResponse, PlainTextResponse, Response
from starlette.routing import Route

from streamkernel.daemon.base.health import Health, NoStatusError
from streamkernel.daemon.config.endpoints import EndpointConfig
from streamkernel.daemon.serving.endpoint import Endpoint, Question
from streamkernel.daemon.serving.hosts import Hosts
from streamkernel.daemon.serving.middleware import SecurityMiddleware
from streamkernel.daemon.serving.proxy import DaemonProxy
from streamkernel.daemon.serving.published import PublishedMetrics, Scrape, ScrapeAnswer, answer_scrape
from streamkernel.daemon.serving.status_query import status_query
from streamkernel.daemon.serving.threads import Threads

__all__ = ["make_application"]

T = TypeVar("T")

# Probes carry no credentials, and what they are told is one word.
_PROBES = frozenset({"/healthz", "/readyz"})


def make_application(
    settings: EndpointConfig,
    metrics: CollectorRegistry | PublishedMetrics | DaemonProxy,
    health: Health,
    workers: int,
    endpoints: Sequence[Endpoint] = (),
    section: str = "metrics",
) -> Starlette:
    """Return the ASGI application that serves metrics and the health to those the settings let in.

    Published metrics and their page are answered in the event loop; a registry, which is collected at each request, and
    what another process has, by worker threads, so many at once, and so are probes, apart. Other endpoints answer in
    the event loop. The settings are those of a section of the configuration, which refusals name.
    """
    hosts = Hosts([settings.host, *settings.allowed_hosts])
    security = Middleware(
        SecurityMiddleware, hosts=hosts, basic_auth=settings.basic_auth, open_paths=_PROBES, section=section
    )
    routes = _Routes(metrics, health, workers)
    answering = {
        "/": routes.page,
        **({} if health.status is None else {"/api/status": routes.status}),
        "/metrics": routes.metrics,
        "/healthz": routes.healthz,
        "/readyz": routes.readyz,
    }
    application = Starlette(
        routes=[
            *(Route(path, answer) for path, answer in answering.items()),
            *(Route(one.path, _route(one), methods=[one.method]) for one in endpoints),
        ],
        middleware=[security],
        exception_handlers={HTTPException: _refusal_of(dict.fromkeys(answering, "GET"), endpoints)},
    )
    application.router.redirect_slashes = False
    return application


class _Routes:
    """Answers requests; what may take long, in a thread: a member of a group asks its partitions."""

    def __init__(
        self, metrics: CollectorRegistry | PublishedMetrics | DaemonProxy, health: Health, workers: int
    ) -> None:
        self._published = isinstance(metrics, PublishedMetrics)
        self._answer: Callable[[Scrape], ScrapeAnswer]
        if isinstance(metrics, CollectorRegistry):
            self._answer = partial(answer_scrape, make_wsgi_app(metrics))
        else:
            self._answer = metrics.answer
        self._health = health
        # Apart, so that a slow scrape holds up no probe, and no probe, which anybody may ask for, a scrape.
        self._scrapes, self._probes = Threads(workers), Threads(workers)

    async def page(self, request: Request) -> Response:  # noqa: ARG002
        policy = {"Content-Security-Policy": self._health.policy} if self._health.policy else None
        return HTMLResponse(_encoded(await self._run(lambda: self._health.page())), headers=policy)

    async def status(self, request: Request) -> Response:
        status = self._health.status
        assert status is not None
        try:
            since, partition = status_query(request.query_params)
        except ValueError as error:
            return _text(HTTPStatus.BAD_REQUEST, str(error))
        try:
            body = await self._run(lambda: status(since, partition))
        except NoStatusError as error:
            return _text(HTTPStatus.SERVICE_UNAVAILABLE, str(error))
        if body is None:
            return _text(HTTPStatus.NOT_FOUND, f"not found: partition {partition} is not held here")
        return Response(body, media_type="application/json")

    async def metrics(self, request: Request) -> Response:
        fields = request.headers
        query = request.scope["query_string"].decode("latin-1")
        scrape = Scrape(query, fields.get("accept"), fields.get("accept-encoding"))
        try:
            answer = await self._run(lambda: self._answer(scrape))
        except NoStatusError as error:
            return _text(HTTPStatus.SERVICE_UNAVAILABLE, str(error))
        return Response(answer.body, answer.status, answer.headers)

    async def _run(self, function: Callable[[], T]) -> T:
        """Run what makes an answer; where all was published, here: each thread more waits for the one that learns."""
        return function() if self._published else await self._scrapes.run(function)

    async def healthz(self, request: Request) -> Response:  # noqa: ARG002
        trouble = await self._probes.run(lambda: self._health.trouble())
        return _text(HTTPStatus.SERVICE_UNAVAILABLE if trouble else HTTPStatus.OK, trouble or "ok")

    async def readyz(self, request: Request) -> Response:  # noqa: ARG002
        obstacle = await self._probes.run(lambda: self._health.unready())
        return _text(HTTPStatus.SERVICE_UNAVAILABLE if obstacle else HTTPStatus.OK, obstacle or "ready")


def _route(endpoint: Endpoint) -> Callable[[Request], Awaitable[Response]]:
    async def answer(request: Request) -> Response:
        given = await endpoint.answer(Question(await request.body(), request.headers))
        return Response(given.body, given.status, dict(given.headers), given.media_type)

    return answer


def _refusal_of(
    methods: Mapping[str, str], endpoints: Sequence[Endpoint]
) -> Callable[[Request, Exception], Awaitable[Response]]:
    """Return what answers a request that no route takes, of these paths and endpoints."""
    methods = {**methods, **{one.path: one.method for one in endpoints}}
    *most, last = methods
    here = f"{', '.join(most)} and {last}"

    async def refused(request: Request, error: Exception) -> Response:
        assert isinstance(error, HTTPException)
        method = methods.get(request.url.path, "GET" if not endpoints else None)
        allowed = ("GET", "HEAD") if method == "GET" else (method,)
        if method is not None and request.method not in allowed:
            text = f"only {method}"
            return _text(HTTPStatus.METHOD_NOT_ALLOWED, text, {"Allow": ", ".join(map(str, allowed))})
        if error.status_code == HTTPStatus.NOT_FOUND:
            return _text(HTTPStatus.NOT_FOUND, f"not found: {here} are here")
        return _text(HTTPStatus(error.status_code), error.detail)

    return refused


def _text(status: HTTPStatus, text: str, headers: dict[str, str] | None = None) -> Response:
    return PlainTextResponse(_encoded(f"{text}\n"), status, headers)


def _encoded(text: str) -> bytes:
    """Return a text in UTF-8, also where it names a file whose name is not."""
    return text.encode("utf-8", "backslashreplace")
