"""The metrics of a member: those of its children at the moment they are asked for, labelled by partition."""

from __future__ import annotations

import http.client
import logging
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor

from prometheus_client import CollectorRegistry, Metric
from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.registry import Collector

from streamkernel.daemon.config.schema import BasicAuthConfig
from streamkernel.daemon.monitoring.metrics import make_metric

__all__ = ["ANSWER_SECONDS", "Addresses", "Federation", "ask"]

Addresses = Callable[[], Mapping[int, tuple[str, int]]]
"""Gives by partition the host and the port where its daemon serves."""

_log = logging.getLogger(__name__)

# A child answers in milliseconds, unless it is stopped; Prometheus waits ten seconds for all of them.
ANSWER_SECONDS = 2.0
_AT_ONCE = 16


class Federation(Collector):
    """Collector of all metrics of all children, each sample with the label ``partition``.

    Attributes
    ----------
    registry
        What to serve: these, and how many partitions the member holds.

    """

    def __init__(
        self, addresses: Addresses, held: Callable[[], int], basic_auth: BasicAuthConfig | None = None
    ) -> None:
        self._addresses = addresses
        self._basic_auth = basic_auth
        self.registry = CollectorRegistry()
        self.registry.register(self)
        make_metric("group_partitions", self.registry).set_function(held)

    def collect(self) -> Iterator[Metric]:
        """Ask the children; one that does not answer in time is left out."""
        merged: dict[str, Metric] = {}
        for partition, (status, text) in ask(self._addresses(), "/metrics", self._basic_auth).items():
            if status != http.HTTPStatus.OK:
                _log.debug("partition %d does not send its metrics: %s", partition, text)
                continue
            for family in text_string_to_metric_families(text):
                known = merged.setdefault(family.name, Metric(family.name, family.documentation, family.type))
                # Where a metric tells partitions apart by itself, as the lag does, it is the same one.
                known.samples += [
                    sample._replace(labels={"partition": str(partition), **sample.labels}) for sample in family.samples
                ]
        yield from merged.values()


def ask(
    addresses: Mapping[int, tuple[str, int]], path: str, basic_auth: BasicAuthConfig | None = None
) -> dict[int, tuple[int, str]]:
    """Ask all children for a path at once, and return the status and the text by partition.

    Status 0 comes with the reason where no answer came in time.
    """
    headers = {} if basic_auth is None else {"Authorization": basic_auth.header}

    def get(address: tuple[str, int]) -> tuple[int, str]:
        # Not by urllib, which would go to a proxy of the environment.
        connection = http.client.HTTPConnection(*address, timeout=ANSWER_SECONDS)
        try:
            connection.request("GET", path, headers=headers)
            answer = connection.getresponse()
            return answer.status, answer.read().decode()
        except (OSError, http.client.HTTPException) as error:
            return 0, f"no answer ({error})"
        finally:
            connection.close()

    with ThreadPoolExecutor(_AT_ONCE) as pool:
        return dict(zip(addresses, pool.map(get, addresses.values()), strict=True))
