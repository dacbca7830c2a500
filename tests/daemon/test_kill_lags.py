"""Kills of a run whose model knows the past of the target: a record keeps the lags it was predicted with."""

from __future__ import annotations

import json
import math
import random
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.daemon.conftest import Home, Launcher
from tests.daemon.labels_stream import adds_up, outcome, sections

RECORDS = 900
LATE = 6
SMALL: dict[str, Any] = {"n_features": 16, "metric_schedule": [100, 300], "buffer_size": 200, "memory": 300, "seed": 1}
MODELS: dict[str, list[Any]] = {
    "numbers": [{"streamkernel.AdaptiveKernelRegressor": {"lags": 3, **SMALL}}],
    "classes": [{"streamkernel.AdaptiveKernelClassifier": {"lags": 1, **SMALL}}],
}


def write_series(folder: Path, numbers: bool, late: bool) -> None:
    """Write records whose target goes on from where it was; some have none, and some no key."""
    draw = random.Random(5)
    y, rows = 0.0, []
    for number in range(RECORDS):
        a = draw.gauss(0, 1)
        y = 0.9 * y + math.sin(2 * a) + draw.gauss(0, 0.1)
        target = None if draw.random() < 0.05 else y if numbers else str(int(y > 0) + int(y > 1))
        rows.append({"id": None if number % 97 == 50 else number, "a": a, "b": draw.gauss(0, 1), "y": target})
    labels = [{"id": row["id"], "y": row["y"]} for row in rows]
    if late:
        rows = [{**row, "y": row["y"] if number % 31 == 3 else None} for number, row in enumerate(rows)]
        (folder / "labels.jsonl").write_text("\n" * LATE + "".join(f"{json.dumps(label)}\n" for label in labels))
    (folder / "records.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))


@pytest.mark.parametrize("late", [False, True], ids=["at once", "late labels"])
@pytest.mark.parametrize("kind", MODELS)
def test_a_run_that_is_killed_ends_with_the_same_bytes(
    homes: Callable[[str], Home], launcher: Launcher, kind: str, late: bool
) -> None:
    results = []
    # The metrics of 100 and 300 records are in the making for some records: within one, and beside one, it is killed.
    for name, kills in (("whole", []), ("killed", ["consumed:107", "mid-batch:2", "consumed:205", "consumed:333"])):
        home = homes(name)
        write_series(home.folder, kind == "numbers", late)
        own = sections(target_type="float" if kind == "numbers" else "str")
        own["checkpoint"]["every_records"] = 50
        if not late:
            own["source"]["inputs"] = {"exclude": ["id"]}
            own["labels"] = None
        home.configure(**own, model=MODELS[kind])
        for kill in kills:
            status = launcher.call(home, "run", "config.yaml", STREAMKERNEL_CRASH=kill).returncode
            assert status == -signal.SIGKILL
        assert launcher.call(home, "run", "config.yaml").returncode == 0
        assert home.header()["account"]["learnt"] > 0.8 * RECORDS
        if late:
            adds_up(home.header())
            assert home.header()["labels"]["account"]["matched"] > 0.7 * RECORDS
        results.append(outcome(home) if late else home.result())
    assert results[0] == results[1]
