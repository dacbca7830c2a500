"""The HTTP endpoint as tests ask it, and the samples of an answer."""

from __future__ import annotations

import base64
import ssl
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from prometheus_client import CollectorRegistry
from prometheus_client.parser import text_string_to_metric_families

from streamkernel.daemon.base.health import Health
from streamkernel.daemon.config.schema import MetricsConfig
from streamkernel.daemon.http.server import Server


def get(url: str, user: str | None = None, context: ssl.SSLContext | None = None) -> tuple[int, str]:
    headers = {} if user is None else {"Authorization": "Basic " + base64.b64encode(user.encode()).decode()}
    request = urllib.request.Request(url, headers=headers)
    try:
        with urllib.request.urlopen(request, timeout=30, context=context) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read().decode()


@contextmanager
def serving(health: Health | None = None, registry: CollectorRegistry | None = None, **settings: Any) -> Iterator[str]:
    server = Server(MetricsConfig(port=0, **settings), registry or CollectorRegistry(), health or Health())
    try:
        yield server.url
    finally:
        server.close()


def values_of(text: str) -> dict[str, float]:
    """The samples by name and labels, without the prefix."""
    return {
        sample.name.removeprefix("streamkernel_")
        + (
            "{" + ",".join(f"{k}={v}" for k, v in sorted(sample.labels.items())) + "}" if sample.labels else ""
        ): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }
