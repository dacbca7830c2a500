"""The page on the metrics has every one; `python -m tests.test_metrics_page` writes it from what is exported."""

from collections.abc import Iterable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from prometheus_client import CollectorRegistry, Metric
from river import linear_model

from streamkernel import (
    AdaptiveKernelRegressor,
    KernelDensityRatio,
    KernelNoveltyDetector,
    KernelRegressor,
    WindowRefit,
)
from streamkernel.daemon.group.federation import Federation
from streamkernel.daemon.labels.join import LabelJoin
from streamkernel.daemon.monitoring.metrics import Exporter
from streamkernel.daemon.monitoring.model_view import ModelView
from tests.daemon.service import service_metrics

PAGE = Path(__file__).parents[1] / "docs" / "reference" / "metrics.md"

INTRO = """# Metrics

What `/metrics` serves where the configuration has a section [`metrics`](configuration.md#metrics), for Prometheus or
whatever reads its format. Each name begins with `streamkernel_`; a board that draws them is
`configs/grafana/streamkernel.json`. Which of them to watch, and what their values tell:
[operating the daemon](../operations.md#what-to-watch). Seconds are seconds, sizes are bytes, times are seconds since
1970 (NaN before there is one).

- Counters begin at 0 with each process; only `lifetime_records` goes on from the checkpoint.
- A histogram is there as `..._bucket{le}`, `..._sum` and `..._count`.
- The models are those at the end of the pipeline. Of a [group](../groups.md), the member serves the metrics of all its
  daemons, each with the label `partition` besides.
"""

_RIVER = linear_model.LogisticRegression


def _families(registry: CollectorRegistry) -> dict[str, Metric]:
    return {family.name: family for family in registry.collect()}


def _exported(model: Any, **parts: Any) -> dict[str, Metric]:
    return _families(Exporter(model, ["mae"], 1000, **parts).registry)


def _several() -> dict[str, Metric]:
    exporter = Exporter(_RIVER(), ["mae"], 1000)
    exporter.show_models({"champion": ModelView(rolling={"mae": 0.5})})
    return _families(exporter.registry)


def _adaptive() -> AdaptiveKernelRegressor:
    """One whose metric is learnt, so that importances are exported."""
    model = AdaptiveKernelRegressor(n_features=4, n_trees=0, metric_schedule=(10,), seed=1)
    model.advance([{"a": float(n)} for n in range(30)], list(range(30)))
    return model


def sections() -> dict[str, Iterable[Metric]]:
    """The metrics by when they are there."""
    source: Any = SimpleNamespace(known={("clicks", 0): 1})
    join = LabelJoin("id", "y", 60.0, 10)
    always = _exported(_RIVER(), source=source)
    growing, adaptive = _exported(KernelRegressor()), _exported(_adaptive())
    trained: Any = SimpleNamespace(checkpoint=1, records=1, written=0.0, model=_RIVER())
    ours = growing.keys() & adaptive.keys() - always.keys()
    group = Federation(dict, lambda: 1)
    return {
        "Always": always.values(),
        "With a model of ours": [growing[name] for name in growing if name in ours],
        "With a growing model": _others(growing, always.keys() | ours),
        "With a model that is refitted on its window": _others(
            _exported(WindowRefit(KernelRegressor(max_features=64))), growing
        ),
        "With a novelty detector": _others(_exported(KernelNoveltyDetector()), growing),
        "With a density ratio": _others(_exported(KernelDensityRatio()), growing),
        "With an adaptive model": _others(adaptive, always.keys() | ours),
        "With a file or topic for lines": _others(_exported(_RIVER(), outputs=("predictions",)), always.keys()),
        "With several models": _others(_several(), always.keys()),
        "With late labels": _others(_exported(_RIVER(), late=join), always.keys()),
        "In mode predict": _others(_exported(_RIVER(), trained=trained), always.keys()),
        "Of a member of a group": _families(group.registry).values(),
        "Of `streamkernel serve`, with those in mode predict": _others(
            _families(service_metrics().registry), _exported(_RIVER(), trained=trained)
        ),
    }


def _others(families: dict[str, Metric], known: Iterable[str]) -> list[Metric]:
    return [family for name, family in families.items() if name not in set(known)]


def _row(family: Metric) -> str:
    name = family.name.removeprefix("streamkernel_") + ("_total" if family.type == "counter" else "")
    names = dict.fromkeys(label for sample in family.samples for label in sample.labels if label != "le")
    labels = ", ".join(f"`{label}`" for label in names)
    kind = "none: it may fall" if family.type == "unknown" else family.type
    return f"| `{name}` | {kind} | {labels} | {family.documentation} |"


def _values(families: Iterable[Metric]) -> Iterable[str]:
    """Yield, of each metric that has all of a label's values from the start, what these are."""
    for family in families:
        values = dict.fromkeys(
            next(iter(sample.labels.values())) for sample in family.samples if len(sample.labels) == 1
        )
        if family.type == "counter" and len(values) > 1:
            (label,) = family.samples[0].labels
            words = ", ".join(f"`{value}`" for value in values)
            yield f"`{label}` of `{family.name.removeprefix('streamkernel_')}_total`: {words}."


def page() -> str:
    """Return the page as it should be."""
    parts = [INTRO]
    for title, families in sections().items():
        chosen = list(families)
        rows = "\n".join(map(_row, chosen))
        parts.append(f"## {title}\n\n| name | type | labels | |\n| --- | --- | --- | --- |\n{rows}\n")
        parts += [f"{line}\n" for line in _values(chosen)]
    return "\n".join(parts)


def test_the_page_is_drawn_from_what_is_exported():
    assert PAGE.read_text() == page()


def test_every_metric_has_one_line():
    names = [line.split("`")[1] for line in page().splitlines() if line.startswith("| `")]
    assert len(names) == len(set(names)) > 40


if __name__ == "__main__":
    PAGE.write_text(page())
