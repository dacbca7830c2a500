"""What an operator watches the service by: its metrics, the dashboard, and the alert rules, which promtool tries."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path

import pytest
import yaml
from prometheus_client import generate_latest

from tests.daemon.service import service_metrics
from tests.daemon.test_dashboard import OF_SERVICE, expressions

RULES = Path(__file__).parents[2] / "configs/prometheus/serve-alerts.yml"
TARGET = {"job": "serve", "instance": "here"}
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
    exported = {name for name in names() if not name.endswith("_created")}
    assert asked <= exported
    assert {name for name in exported if not name.endswith(("_sum", "_count"))} <= asked


def test_the_alerts_ask_for_what_is_exported() -> None:
    rules = yaml.safe_load(RULES.read_text())["groups"][0]["rules"]
    asked = {name for rule in rules for name in re.findall(r"\bstreamkernel_\w+", rule["expr"])}
    assert asked
    assert asked <= names()


def series(name: str, values: str, **labels: str) -> dict[str, str]:
    """A series as promtool reads it."""
    text = ",".join(f'{key}="{value}"' for key, value in {**TARGET, **labels}.items())
    return {"series": f"{name}{{{text}}}", "values": values}


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
    rules = yaml.safe_load(RULES.read_text())["groups"][0]["rules"]
    assert {rule["alert"] for rule in rules} == set(ILL)
    changed = {one["series"]: one for one in ILL.get(str(alert), [])}
    given = {one["series"]: one for one in WELL} | changed
    silent = [{"alertname": one, "eval_time": "30m", "exp_alerts": []} for one in ILL if one != alert]
    count = f'count(ALERTS{{alertname="{alert}",alertstate="firing"}})'
    loud = {"expr": count, "eval_time": "30m", "exp_samples": [{"labels": "{}", "value": 1}]}
    test = {
        "interval": "1m",
        "input_series": list(given.values()),
        "alert_rule_test": silent,
        "promql_expr_test": [] if alert is None else [loud],
    }
    path = tmp_path / "test.yml"
    path.write_text(yaml.safe_dump({"rule_files": [str(RULES)], "evaluation_interval": "1m", "tests": [test]}))
    done = subprocess.run([promtool, "test", "rules", str(path)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_manual_names_each_alert() -> None:
    text = (RULES.parents[2] / "docs/operations.md").read_text()
    assert [name for name in ILL if f"`{name}`" not in text] == []
    assert json.loads(OF_SERVICE.read_text())["uid"] in text
