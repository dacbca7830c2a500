"""The Grafana dashboards show metrics that the daemon and the service have."""

from __future__ import annotations

import itertools
import json
import re
from pathlib import Path

import pytest

from streamkernel import (
    AdaptiveKernelClassifier,
    KernelClassifier,
    KernelDensityRatio,
    KernelNoveltyDetector,
    WindowRefit,
)
from streamkernel.daemon.labels.join import LabelJoin
from streamkernel.daemon.monitoring.metrics import Exporter
from streamkernel.daemon.monitoring.model_view import ModelView
from tests.daemon.endpoint import get, serving, values_of

FOLDER = Path(__file__).parents[2] / "configs/grafana"
DASHBOARD, OF_SERVICE = FOLDER / "streamkernel.json", FOLDER / "streamkernel-serve.json"
both = pytest.mark.parametrize("path", [DASHBOARD, OF_SERVICE], ids=lambda path: path.stem)


def expressions(path: Path = DASHBOARD) -> list[str]:
    """What a dashboard asks for."""
    dashboard = json.loads(path.read_text())
    asked = [target["expr"] for panel in dashboard["panels"] for target in panel["targets"]]
    variables = [one["query"]["query"] for one in dashboard["templating"]["list"] if one["type"] == "query"]
    return asked + variables


class TestDashboard:
    def test_every_name_it_asks_for_is_exported_and_every_exported_name_is_asked_for(self) -> None:
        join = LabelJoin("id", "y", 60.0, 10)
        models = (
            *(KernelClassifier(), AdaptiveKernelClassifier(), KernelNoveltyDetector(), KernelDensityRatio()),
            WindowRefit(KernelClassifier(max_features=64)),
        )
        exporters = [Exporter(model, ["accuracy"], 1000, join, outputs=["predictions"]) for model in models]
        exporters[0].show_models({"champion": ModelView(rolling={"accuracy": 0.9})})
        served = set()
        for family in itertools.chain(*(exporter.registry.collect() for exporter in exporters)):
            if family.type == "histogram":
                served |= {f"{family.name}_{part}" for part in ("bucket", "count", "sum")}
            else:
                served.add(family.name + ("_total" if family.type == "counter" else ""))
        asked = {name for text in expressions() for name in re.findall(r"\bstreamkernel_\w+", text)}
        assert asked <= served
        base = {re.sub(r"_(bucket|count|sum)$", "", name) for name in asked} | asked
        missing = {
            name for name in served if re.sub(r"_(bucket|count|sum)$", "", name) not in base and name not in base
        }
        assert not missing

    @both
    def test_it_can_be_imported(self, path: Path) -> None:
        dashboard = json.loads(path.read_text())
        source = dashboard["templating"]["list"][0]
        assert (source["name"], source["type"], source["query"]) == ("datasource", "datasource", "prometheus")
        numbers = [panel["id"] for panel in dashboard["panels"]]
        assert len(set(numbers)) == len(numbers)
        for panel in dashboard["panels"]:
            assert panel["title"]
            assert panel["description"]
            for target in panel["targets"]:
                assert target["datasource"] == panel["datasource"] == {"type": "prometheus", "uid": "${datasource}"}

    @both
    def test_no_two_panels_overlap(self, path: Path) -> None:
        taken: set[tuple[int, int]] = set()
        for panel in json.loads(path.read_text())["panels"]:
            place = panel["gridPos"]
            cells = {
                (x, y)
                for x in range(place["x"], place["x"] + place["w"])
                for y in range(place["y"], place["y"] + place["h"])
            }
            assert not cells & taken
            assert place["x"] + place["w"] <= 24
            taken |= cells

    def test_the_counters_it_rates_are_there_before_they_count(self) -> None:
        with serving(registry=Exporter(KernelClassifier(), ["accuracy"], 1000).registry) as url:
            values = values_of(get(f"{url}/metrics")[1])
        for name in ("feature_blocks_total{action=grown}", "records_dead_lettered_total{reason=refused}"):
            assert values[name] == 0
