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
    KernelMultiTargetRegressor,
    KernelNoveltyDetector,
    KernelRegressor,
    WindowRefit,
)
from streamkernel.daemon.group.federation import Federation
from streamkernel.daemon.labels.join import LabelJoin
from streamkernel.daemon.monitoring.exporter import Exporter
from streamkernel.daemon.monitoring.metrics import METRICS
from streamkernel.daemon.monitoring.view import ModelView, View
from streamkernel.growth import CDSG
from tests.daemon.service import service_metrics

PAGE = Path(__file__).parents[1] / "docs" / "metrics.md"

INTRO = """# Metrics

`/metrics` serves these metrics if the configuration has a section [`metrics`](reference/configuration.md#metrics).
Prometheus and compatible tools read the format. Each name begins with `streamkernel_`, except the process metrics,
which have their standard names. Dashboards, recording rules and alerts are in `configs/mixin/`.
[Operating the daemon](operate/watching.md) says which metrics to watch and what their values mean. A mean over
no records is NaN, and so is the time of an event that has not happened.

- *restart* says how a process restart changes a metric:
    - **0**: it starts at 0, as Prometheus expects of counters.
    - **kept**: it has the value in the checkpoint.
    - **reset**: it starts without the records of the previous process.
    - **current**: it shows the current state and no history.
- A *loss* is in the unit of the model's loss. For a regressor, the unit is the standard deviation of the targets. A
  *share of 1* is a number from 0 to 1.
- A histogram is exported as `..._bucket{le}`, `..._sum` and `..._count`.
- The model is the one at the end of the pipeline. A member of a [group](groups.md) serves the metrics of all its
  daemons, including their process metrics, with the additional label `partition`.
- A stream cannot create label values without limit. `input` has at most 20 values at a time. `topic` and `partition`
  are the ones the daemon reads. `path` and `status` belong to the service's own answers. All other values are in the
  configuration or in the tables below. No label names a record, a class or a file.
- Measuring costs the same for each record, whatever its content. The daemon updates counts and seconds once per chunk.
  Calibration samples at most 128 records of a chunk.
"""

PREFIX = "streamkernel_"
_HEAD = "| name | type | unit | labels | restart | meaning |\n| --- | --- | --- | --- | --- | --- |"
_RIVER = linear_model.LogisticRegression


def _families(registry: CollectorRegistry) -> dict[str, Metric]:
    return {family.name: family for family in registry.collect()}


def _exported(model: Any, **parts: Any) -> dict[str, Metric]:
    return _families(Exporter(model, ["mae"], 1000, **parts).registry)


def _several() -> dict[str, Metric]:
    exporter = Exporter(_RIVER(), ["mae"], 1000)
    exporter.refresh(View(models={"champion": ModelView(rolling={"mae": 0.5})}))
    return _families(exporter.registry)


def _of_targets() -> dict[str, Metric]:
    exporter = Exporter(KernelMultiTargetRegressor(), ["mae"], 1000)
    exporter.refresh(View(rolling={"mae": 0.5}, rolling_targets={"price": {"mae": 0.5}}))
    return _families(exporter.registry)


def _adaptive() -> AdaptiveKernelRegressor:
    """One whose metric is learned, so that importances are exported."""
    model = AdaptiveKernelRegressor(n_features=4, n_trees=0, metric_schedule=(10,), seed=1)
    model.advance([{"a": float(n)} for n in range(30)], list(range(30)))
    return model


def sections() -> dict[str, Iterable[Metric]]:
    """The metrics by when they are there."""
    source: Any = SimpleNamespace(known={("clicks", 0): 1})
    join = LabelJoin("id", "y", 60.0, 10)
    labels, numbers = _exported(_RIVER(), source=source), _exported(linear_model.LinearRegression(), source=source)
    always = {name: family for name, family in labels.items() if name in numbers}
    known = labels.keys() | numbers.keys()
    growing, adaptive = _exported(KernelRegressor(growth=CDSG())), _exported(_adaptive())
    mixture = _exported(KernelRegressor())
    trained: Any = SimpleNamespace(checkpoint=1, records=1, written=0.0, model=_RIVER())
    ours = growing.keys() & adaptive.keys() - known
    group = Federation(dict, lambda: 1)
    return {
        "Always": [family for name, family in always.items() if name.startswith(PREFIX)],
        "Process metrics, always": [family for name, family in always.items() if not name.startswith(PREFIX)],
        "With a classifier": _others(labels, always.keys()),
        "With a regressor": _others(numbers, always.keys()),
        "With one of our models": [growing[name] for name in growing if name in ours],
        "With a growing model": _others(growing, known | ours),
        "With a model refitted on its window": _others(
            _exported(WindowRefit(KernelRegressor(max_features=64))), growing
        ),
        "With a novelty detector": _others(_exported(KernelNoveltyDetector()), growing),
        "With several targets": _others(_of_targets(), growing.keys() | mixture.keys()),
        "With a density ratio": _others(_exported(KernelDensityRatio()), growing),
        "With an adaptive model, or a growing one that is a mixture": [
            family for name, family in adaptive.items() if name in mixture.keys() - known - ours
        ],
        "With an adaptive model": _others(adaptive, known | mixture.keys()),
        "With a file or topic as output": _others(_exported(_RIVER(), outputs=("predictions",)), known),
        "With several models": _others(_several(), known),
        "With late labels": _others(_exported(_RIVER(), late=join), known),
        "In mode predict": _others(_exported(_RIVER(), trained=trained), known),
        "For a member of a group": _families(group.registry).values(),
        "For `streamkernel serve`, besides the process metrics and those of mode predict": _others(
            _families(service_metrics().registry), _exported(_RIVER(), trained=trained)
        ),
    }


def _others(families: dict[str, Metric], known: Iterable[str]) -> list[Metric]:
    return [family for name, family in families.items() if name not in set(known)]


def _row(family: Metric) -> str:
    bare = family.name.removeprefix(PREFIX)
    name = bare + ("_total" if family.type == "counter" else "")
    names = dict.fromkeys(label for sample in family.samples for label in sample.labels if label != "le")
    labels = ", ".join(f"`{label}`" for label in names)
    kind = "untyped: it may decrease" if family.type == "unknown" else family.type
    cells = f"`{name}`", kind, METRICS[bare].unit, labels, METRICS[bare].restart, family.documentation
    return f"| {' | '.join(cells)} |"


def _values(families: Iterable[Metric]) -> Iterable[str]:
    """Yield, of each metric that has all of a label's values from the start, what these are."""
    for family in families:
        values = dict.fromkeys(
            next(iter(sample.labels.values())) for sample in family.samples if len(sample.labels) == 1
        )
        if family.type == "counter" and len(values) > 1:
            (label,) = family.samples[0].labels
            words = ", ".join(f"`{value}`" for value in values)
            yield f"`{label}` of `{family.name.removeprefix(PREFIX)}_total`: {words}."


def page() -> str:
    """Return the page as it should be."""
    parts = [INTRO]
    for title, families in sections().items():
        chosen = list(families)
        rows = "\n".join(map(_row, chosen))
        parts.append(f"## {title}\n\n{_HEAD}\n{rows}\n")
        parts += [f"{line}\n" for line in _values(chosen)]
    return "\n".join(parts)


def test_the_page_is_drawn_from_what_is_exported():
    assert PAGE.read_text() == page()


def test_every_metric_has_one_line():
    names = [line.split("`")[1] for line in page().splitlines() if line.startswith("| `")]
    assert len(names) == len(set(names)) > 40


def test_no_more_is_in_the_table_than_there_is():
    named = {line.split("`")[1].removesuffix("_total") for line in page().splitlines() if line.startswith("| `")}
    assert METRICS.keys() == named


if __name__ == "__main__":
    PAGE.write_text(page())
