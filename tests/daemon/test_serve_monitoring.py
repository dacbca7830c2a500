"""What an operator watches the service by: its metrics, the dashboard, and the alert rules, which promtool tries."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path

import pytest
from prometheus_client import generate_latest

from tests.daemon.alert_rules import assert_fires, rules_in, series
from tests.daemon.service import service_metrics
from tests.daemon.test_dashboard import OF_SERVICE, expressions

RULES = Path(__file__).parents[2] / "configs/prometheus/serve-alerts.yml"
REQUESTS, JOURNAL = "streamkernel_http_requests_total", "streamkernel_journal"


def names() -> set[str]:
    """The names it exports, of a histogram those that are asked for."""
    return {sample.name for family in service_metrics().registry.collect() for sample in family.samples}


def test_promtool_finds_no_fault(promtool: str) -> None:
    checked = subprocess.run(
        [promtool, "check", "metrics"],
        input=generate_latest(service_metrics().registry),
        capture_output=True,
        check=False,
    )
    assert (checked.returncode, checked.stdout, checked.stderr) == (0, b"", b"")


def test_the_dashboard_asks_for_all_that_is_exported_and_for_nothing_else() -> None:
    asked = {name for text in expressions(OF_SERVICE) for name in re.findall(r"\bstreamkernel_\w+", text)}
    exported = {name for name in names() if name.startswith("streamkernel_") and not name.endswith("_created")}
    assert asked <= exported
    assert {name for name in exported if not name.endswith(("_sum", "_count"))} <= asked


def test_the_alerts_ask_for_what_is_exported() -> None:
    asked = {name for rule in rules_in(RULES) for name in re.findall(r"\bstreamkernel_\w+", rule["expr"])}
    assert asked
    assert asked <= names()


def bucket(bound: str, values: str) -> dict[str, str]:
    return series("streamkernel_http_request_duration_seconds_bucket", values, path="/predict", le=bound)


MODEL = "streamkernel_model_checkpoint_timestamp_seconds"
WELL = [
    series(MODEL, "60+60x60"),
    series("streamkernel_model_reload_failures_total", "0+0x60"),
    series(f"{JOURNAL}_bytes", "10+0x60", journal="source"),
    series(f"{JOURNAL}_max_bytes", "100+0x60", journal="source"),
    series(f"{JOURNAL}_refused_total", "0+0x60", journal="source"),
    series(REQUESTS, "0+1000x60", path="/predict", status="200"),
    bucket("0.05", "0+1000x60"),
    bucket("0.1", "0+1000x60"),
    bucket("0.25", "0+1000x60"),
    bucket("+Inf", "0+1000x60"),
]
ILL = {
    "StreamkernelNoModel": [series(MODEL, "0+0x60")],
    "StreamkernelModelStale": [series(MODEL, "1+0x60")],
    "StreamkernelModelReloadFails": [series("streamkernel_model_reload_failures_total", "0+1x60")],
    "StreamkernelJournalFilling": [series(f"{JOURNAL}_bytes", "80+0x60", journal="source")],
    "StreamkernelJournalRefuses": [series(f"{JOURNAL}_refused_total", "0+1x60", journal="source")],
    "StreamkernelServeErrors": [series(REQUESTS, "0+50x60", path="/predict", status="503")],
    "StreamkernelServeSlow": [bucket("0.05", "0+900x60"), bucket("0.1", "0+900x60")],
}


@pytest.mark.parametrize("alert", [None, *ILL])
def test_each_alert_comes_when_it_should_and_no_other(alert: str | None, promtool: str, tmp_path: Path) -> None:
    assert_fires(alert, RULES, WELL, ILL, promtool, tmp_path)


def test_the_manual_names_each_alert() -> None:
    text = (RULES.parents[2] / "docs/operations.md").read_text()
    assert [name for name in ILL if f"`{name}`" not in text] == []
    assert json.loads(OF_SERVICE.read_text())["uid"] in text
