"""The prediction service as tests start and ask it."""

from __future__ import annotations

import http.client
import json
from collections.abc import Iterator
from contextlib import ExitStack, chdir, contextmanager
from typing import Any

from streamkernel.connectors.journal.source import JournalSource
from streamkernel.daemon.assembly.plan import prepare
from streamkernel.daemon.base.health import Health
from streamkernel.daemon.http.server import Server
from streamkernel.daemon.serve.roles import service_plan
from streamkernel.daemon.serve.run import start_service
from streamkernel.daemon.serve.service_metrics import ServiceMetrics
from tests.daemon.conftest import Home

LATE: dict[str, Any] = {
    "source": {"kind": "journal", "directory": "out/records", "inputs": {"exclude": ["note"]}},
    "labels": {
        "source": {"kind": "journal", "directory": "out/labels", "target": "y"},
        "key": "id",
    },
    "serve": {"port": 0, "reload": 0.02},
}
DIRECT: dict[str, Any] = {
    "source": {"kind": "journal", "directory": "out/records", "target": "y"},
    "serve": {"port": 0, "reload": 0.02},
}


class Client:
    """A connection to a service."""

    def __init__(self, port: int) -> None:
        self._connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)

    def ask(self, path: str, body: Any = None, **headers: str) -> tuple[int, Any]:
        """Send a body, JSON unless it is bytes already; gives the status and the answer."""
        if body is not None and not isinstance(body, bytes):
            body = json.dumps(body).encode()
        given = {name.replace("_", "-"): value for name, value in headers.items()}
        method = "GET" if body is None else "POST"
        self._connection.request(method, path, body, {"Content-Type": "application/json", **given})
        answer = self._connection.getresponse()
        text = answer.read()
        self.headers = answer.headers
        return answer.status, json.loads(text) if answer.headers["content-type"] == "application/json" else text

    def close(self) -> None:
        self._connection.close()


def service_metrics() -> ServiceMetrics:
    """The metrics of a service with one journal, of the section `source`, after a request."""
    metrics = ServiceMetrics()
    metrics.journal("source", lambda: 0, 2**20)
    with metrics.request("/predict") as request:
        request.status = 200
    metrics.count([{}])
    return metrics


@contextmanager
def serving(home: Home, **sections: Any) -> Iterator[tuple[Client, Server]]:
    """Serve a configuration in this process, which works in the home's folder meanwhile."""
    with ExitStack() as stack:
        stack.enter_context(chdir(home.folder))
        started = start_service(service_plan(prepare(home.configure(**sections))), stack, Health())
        client = Client(started.port)
        stack.callback(client.close)
        yield client, started


def journalled(home: Home, name: str = "records") -> list[dict[str, Any]]:
    """Give the records in a journal."""
    with JournalSource(home.folder / "out" / name) as source:
        source.open()
        return [json.loads(record.raw) for record in source.poll(1000, 0)]
