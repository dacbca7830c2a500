"""The metrics that daemons of all kinds, and the service, export."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from prometheus_client import Metric

from tests.daemon.service import service_metrics
from tests.test_metrics_page import sections


def _names(families: Iterable[Metric]) -> set[str]:
    names = set()
    for family in families:
        if family.type == "histogram":
            names |= {f"{family.name}_{part}" for part in ("bucket", "count", "sum")}
        else:
            names.add(family.name + ("_total" if family.type == "counter" else ""))
    return names


def by_service() -> set[str]:
    """Return the names of what the service exports."""
    return _names(service_metrics().registry.collect())


def by_daemons() -> set[str]:
    """Return the names of what daemons export, with models of all kinds, labels, outputs, and of a group."""
    families: Mapping[str, Iterable[Metric]] = sections()
    return _names(family for title, given in families.items() if "serve" not in title for family in given)
