"""Each alert fires when it should, clears when the fault is over, and no other one comes: promtool tries the rules."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from configs.mixin.alerts import alerts_by_group
from configs.mixin.settings import MixinSettings
from tests.mixin.conftest import MIXIN
from tests.mixin.faults import FAULTS
from tests.mixin.timeline import AFTER, BEFORE, DURING, Series, counter, gauge, series, vanishing
from tests.mixin.well import WELL

RULES = [str(MIXIN / "rules.yaml"), str(MIXIN / "alerts.yaml")]
LOSS = series("streamkernel_progressive_loss")
UP = {series("up"): "1x1500"}


def firing(at: str, *alerts: str, of: str = "") -> dict[str, Any]:
    """Expect these alerts, with some labels, to fire at a time, and no others."""
    samples = [{"labels": f'{{alertname="{alert}"}}', "value": 1} for alert in alerts]
    asked = f'count by (alertname) (ALERTS{{alertstate="firing",{of}}})'
    return {"expr": asked, "eval_time": at, "exp_samples": samples}


def tried(
    promtool: str,
    folder: Path,
    given: Series,
    expected: list[dict[str, Any]],
    interval: str = "1m",
    evaluated: str = "5m",
) -> None:
    """Let promtool evaluate the rules over some series."""
    test = {
        "interval": interval,
        "input_series": [{"series": name, "values": values} for name, values in given.items()],
        "promql_expr_test": expected,
    }
    path = folder / "test.yml"
    # What is recorded is older than Prometheus looks back, if alerts are evaluated before it.
    order = [group["name"] for file in RULES for group in yaml.safe_load(Path(file).read_text())["groups"]]
    settings = {"rule_files": RULES, "evaluation_interval": evaluated, "group_eval_order": order}
    path.write_text(yaml.safe_dump({**settings, "tests": [test]}))
    done = subprocess.run([promtool, "test", "rules", str(path)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize(("alert", "fault"), FAULTS, ids=[alert for alert, _ in FAULTS])
def test_an_alert_fires_and_clears(alert: str, fault: Series, promtool: str, tmp_path: Path) -> None:
    assert fault.keys() <= WELL.keys()
    expected = [firing(BEFORE), firing(DURING, alert), firing(AFTER)]
    if alert != "StreamkernelTargetMissing":  # of no target, and so without its labels
        expected.append(firing(DURING, alert, of='job="streamkernel",instance!="",severity!=""'))
    tried(promtool, tmp_path, WELL | fault, expected)


def test_nothing_fires_while_all_is_well(promtool: str, tmp_path: Path) -> None:
    tried(promtool, tmp_path, WELL, [firing(f"{minute}m") for minute in range(0, 270, 10)])


@pytest.mark.parametrize("start", ["", "NaN " * 100], ids=["a loss from the start", "no label at first"])
def test_the_loss_is_compared_with_its_own_week(start: str, promtool: str, tmp_path: Path) -> None:
    """By the quarter of an hour: nine days of a loss that varies, half a day at twice of it, and three days more."""
    loss = f"{start}{'0.3 0.31 0.29 ' * 288}0.6x48 {'0.3 0.31 0.29 ' * 96}"
    quarters = 864 + (100 if start else 0)
    at = [f"{(quarters + more) * 15}m" for more in (-4, 12, 120)]
    expected = [firing(at[0]), firing(at[1], "StreamkernelLossAboveItsWeek"), firing(at[2])]
    tried(promtool, tmp_path, UP | {LOSS: loss}, expected, "15m", "1h")


@pytest.mark.parametrize(
    "loss",
    ["0.3x40 0.6x60", "0.3x900 0.33x100", "-1.0x900 -0.9x100"],
    ids=["without history", "a little", "below zero"],
)
def test_a_loss_that_is_new_or_hardly_larger_is_none_to_tell(loss: str, promtool: str, tmp_path: Path) -> None:
    expected = [firing(f"{quarters * 15}m") for quarters in range(0, 1000, 40)]
    tried(promtool, tmp_path, UP | {LOSS: loss}, expected, "15m", "1h")


def test_a_source_without_a_record_to_come_is_not_stalled(promtool: str, tmp_path: Path) -> None:
    fault = next(fault for alert, fault in FAULTS if alert == "StreamkernelSourceStalled")
    none_left = {name: gauge(0) for name in WELL if "consumer_lag_records" in name}
    tried(promtool, tmp_path, WELL | fault | none_left, [firing(DURING)])


@pytest.mark.parametrize("name", ["StreamkernelCalibrationOff", "StreamkernelCoverageOff"])
def test_what_few_records_say_is_nothing_to_tell(promtool: str, tmp_path: Path, name: str) -> None:
    """Four labels a minute are fewer than a thousand at the end of the fault."""
    fault = next(fault for alert, fault in FAULTS if alert == name)
    few = {series("streamkernel_loss_observations_total"): counter(4)}
    tried(promtool, tmp_path, WELL | fault | few, [firing(DURING)])


LEARNED = series("streamkernel_records_learned_total")
GIVEN, LABELS_GIVEN = (
    series("streamkernel_journal_records_total", journal=journal, result="accepted") for journal in ("source", "labels")
)


@pytest.mark.parametrize(
    ("meanwhile", "stale"),
    [
        ({LEARNED: counter(900, 0), GIVEN: counter(10, 0)}, False),
        ({GIVEN: counter(10, 0)}, True),
        ({LEARNED: vanishing(1)}, True),
        ({LEARNED: vanishing(1), LABELS_GIVEN: counter(10)}, True),
        ({LEARNED: vanishing(1), LABELS_GIVEN: counter(10, 0)}, False),
    ],
    ids=["a quiet night", "only a run learns", "only the service is given targets", "labels", "records without labels"],
)
def test_a_model_is_stale_where_it_could_be_newer(
    meanwhile: Series, stale: bool, promtool: str, tmp_path: Path
) -> None:
    (fault,) = (fault for alert, fault in FAULTS if alert == "StreamkernelModelStale")
    expected = [firing(BEFORE), firing(DURING, *["StreamkernelModelStale"] * stale), firing(AFTER)]
    if not stale:
        expected += [firing(f"{minute}m") for minute in range(60, 100, 5)]
    tried(promtool, tmp_path, WELL | fault | meanwhile, expected)


MISSING = "StreamkernelLabelsMissing"


@pytest.mark.parametrize(
    ("consumed", "hours"),
    [
        ("0x1200", {2: False, 11: False, 14: True, 19: True}),  # past the half day that labels may take
        ("0x360 0+900x840", {2: False, 5: False, 8: False, 14: False, 19: False}),  # six hours late by nature
        ("0+900x360 324000x300 324000+900x540", {5: False, 7: True, 10: True, 12: False}),
        ("0+900x360 0x300 0+900x540", {5: False, 7: True, 10: True, 12: False}),  # started again meanwhile
    ],
    ids=["none ever", "late from the start", "an outage", "an outage with a restart"],
)
def test_labels_that_are_late_are_not_missing(
    consumed: str, hours: dict[int, bool], promtool: str, tmp_path: Path
) -> None:
    given = UP | {
        series("process_start_time_seconds"): "0x1200",
        series("streamkernel_records_consumed_total"): "0+1000x1200",
        series("streamkernel_labels_pending"): "1000x1200",
        series("streamkernel_labels_consumed_total"): consumed,
    }
    tried(promtool, tmp_path, given, [firing(f"{hour}h", *[MISSING] * missing) for hour, missing in hours.items()])


def test_a_slow_refit_is_told_for_an_hour(promtool: str, tmp_path: Path) -> None:
    """Its time stands until the next refit, which does not come."""
    one = {
        series("streamkernel_window_refits_total"): "1x59 2x210",
        series("streamkernel_window_refit_last_seconds"): "12x59 90x210",
    }
    expected = [firing("55m"), firing("70m", "StreamkernelLongRefit"), firing("130m"), firing("260m")]
    tried(promtool, tmp_path, WELL | one, expected)


def test_every_alert_has_a_fault() -> None:
    alerts = [alert.name for group in alerts_by_group(MixinSettings()).values() for alert in group]
    assert len(set(alerts)) == len(alerts)
    assert {alert for alert, _ in FAULTS} | {"StreamkernelLossAboveItsWeek"} == set(alerts)


def test_promtool_finds_no_fault(promtool: str) -> None:
    done = subprocess.run([promtool, "check", "rules", *RULES], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert not done.stderr


def test_the_shipped_prometheus_reads_the_rules(promtool: str) -> None:
    config = MIXIN.parent / "prometheus" / "prometheus.yml"
    done = subprocess.run([promtool, "check", "config", str(config)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "2 rule files found" in done.stdout


def rules() -> list[Mapping[str, Any]]:
    return [
        rule for file in RULES for group in yaml.safe_load(Path(file).read_text())["groups"] for rule in group["rules"]
    ]


def test_every_alert_says_what_an_operator_needs() -> None:
    for rule in rules():
        if "alert" in rule:
            assert rule["alert"].startswith("Streamkernel")
            assert rule["labels"]["severity"] in {"critical", "warning", "info"}
            assert set(rule["annotations"]) == {"summary", "description", "runbook_url", "dashboard_url"}
            assert all(rule["annotations"].values())
            assert rule["annotations"]["runbook_url"].endswith(f"/{rule['alert']}.html")
