"""What an operator watches detectors by: the alert rules, which promtool tries, and the page that explains them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from streamkernel import KernelDensityRatio, KernelNoveltyDetector
from streamkernel.daemon.monitoring.metrics import Exporter
from tests.daemon.alert_rules import assert_fires, rules_in, series

RULES = Path(__file__).parents[2] / "configs/prometheus/detector-alerts.yml"
FLAGGED, SHARE = "streamkernel_rolling_metric", "streamkernel_sample_share"
WELL = [
    series(FLAGGED, "0.05+0x60", metric="flagged", window="1000"),
    series(FLAGGED, "0.9+0x60", metric="accuracy", window="1000"),
    series("streamkernel_divergence_nats", "-0.01+0x60"),
    series(SHARE, "0.5+0x60", sample="p"),
    series(SHARE, "0.5+0x60", sample="q"),
]
ILL = {
    "StreamkernelManyNovelties": [series(FLAGGED, "0.3+0x60", metric="flagged", window="1000")],
    "StreamkernelDrift": [series("streamkernel_divergence_nats", "0.4+0x60")],
    "StreamkernelSampleMissing": [series(SHARE, "0.99+0x60", sample="p"), series(SHARE, "0.01+0x60", sample="q")],
}


def test_the_alerts_ask_for_what_is_exported() -> None:
    exporters = [Exporter(KernelNoveltyDetector(), ["flagged"], 1000), Exporter(KernelDensityRatio(), [], 1000)]
    exported = {sample.name for one in exporters for family in one.registry.collect() for sample in family.samples}
    asked = {name for rule in rules_in(RULES) for name in re.findall(r"\bstreamkernel_\w+", rule["expr"])}
    assert asked
    assert asked <= exported


@pytest.mark.parametrize("alert", [None, *ILL])
def test_each_alert_comes_when_it_should_and_no_other(alert: str | None, promtool: str, tmp_path: Path) -> None:
    assert_fires(alert, RULES, WELL, ILL, promtool, tmp_path)


def test_the_page_names_each_alert() -> None:
    text = (RULES.parents[2] / "docs/how-to/detectors.md").read_text()
    assert [name for name in ILL if f"`{name}`" not in text] == []
