"""PromQL of the panels: metrics of the chosen jobs and instances, their rates and their quantiles."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["PanelQuery", "chosen", "increase", "quantile", "rate", "total_rate"]

_CHOSEN = 'job=~"$job", instance=~"$instance"'


@dataclass(frozen=True)
class PanelQuery:
    """What a panel asks for, and how it names each series of the answer."""

    expr: str
    legend: str


def chosen(name: str, *matchers: str) -> str:
    """Select a metric, of ours unless its name has a prefix of its own, of the jobs and instances that are chosen."""
    full = name if name.startswith(("process_", "instance")) else f"streamkernel_{name}"
    return f"{full}{{{', '.join([*matchers, _CHOSEN])}}}"


def rate(name: str) -> str:
    """Return the rate of a counter, series by series."""
    return f"rate({chosen(name)}[$__rate_interval])"


def increase(name: str) -> str:
    """Return the increase of a counter, series by series."""
    return f"increase({chosen(name)}[$__rate_interval])"


def total_rate(name: str, by: str = "instance") -> str:
    """Return the rate of a counter, summed up by some labels."""
    return f"sum by ({by}) ({rate(name)})"


def quantile(q: float, histogram: str, by: str = "le, instance") -> str:
    """Return a quantile of a histogram."""
    return f"histogram_quantile({q:g}, sum by ({by}) ({rate(f'{histogram}_bucket')}))"
