"""Alert rules tried by promtool: given series of metrics, the alerts that fire after half an hour."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

TARGET = {"job": "one", "instance": "here"}
Series = dict[str, str]


def rules_in(path: Path) -> list[dict[str, Any]]:
    """Read the rules of a file's one group."""
    (group,) = yaml.safe_load(path.read_text())["groups"]
    rules: list[dict[str, Any]] = group["rules"]
    return rules


def series(name: str, values: str, **labels: str) -> Series:
    """Make a series as promtool reads it."""
    text = ",".join(f'{key}="{value}"' for key, value in {**TARGET, **labels}.items())
    return {"series": f"{name}{{{text}}}", "values": values}


def assert_fires(
    alert: str | None,
    rules: Path,
    well: Sequence[Series],
    ill: Mapping[str, Sequence[Series]],
    promtool: str,
    folder: Path,
) -> None:
    """Check that with the series of an alert in the place of those when all is well, it fires and no other does."""
    assert {rule["alert"] for rule in rules_in(rules)} == set(ill)
    changed = {one["series"]: one for one in ill.get(str(alert), [])}
    given = {one["series"]: one for one in well} | changed
    silent = [{"alertname": one, "eval_time": "30m", "exp_alerts": []} for one in ill if one != alert]
    count = f'count(ALERTS{{alertname="{alert}",alertstate="firing"}})'
    loud = {"expr": count, "eval_time": "30m", "exp_samples": [{"labels": "{}", "value": 1}]}
    test = {
        "interval": "1m",
        "input_series": list(given.values()),
        "alert_rule_test": silent,
        "promql_expr_test": [] if alert is None else [loud],
    }
    path = folder / "test.yml"
    path.write_text(yaml.safe_dump({"rule_files": [str(rules)], "evaluation_interval": "1m", "tests": [test]}))
    done = subprocess.run([promtool, "test", "rules", str(path)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
