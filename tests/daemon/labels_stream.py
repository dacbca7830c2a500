"""Streams of records and their late labels, with everything that can be wrong with either."""

from __future__ import annotations

import csv
import io
import json
import random
from pathlib import Path
from typing import Any

from tests.daemon.conftest import Home


def write_pair(folder: Path, kind: str, records: int, seed: int = 0, bad: bool = True) -> None:
    """Write `records.KIND` and `labels.KIND`: labels come some lines late, now and then before their record."""
    draw = random.Random(seed)
    rows: list[dict[str, Any] | str] = []
    labels: list[tuple[float, dict[str, Any] | str]] = []
    for number in range(records):
        a, b = draw.gauss(0, 1), draw.gauss(0, 1)
        label = "yes" if (a * a + b * b < 1.2) != (draw.random() < 0.05) else "no"
        color = draw.choice(["red", "green", None])
        row: dict[str, Any] = {"id": f"k{number}", "a": round(a, 6), "b": round(b, 6), "color": color, "y": None}
        truth: dict[str, Any] = {"id": f"k{number}", "y": label}
        comes = len(rows) + draw.expovariate(1 / 60)
        what = draw.random() if bad else 1.0
        if what < 0.02:
            row["y"] = label
        elif what < 0.03:
            row["id"] = None
        elif what < 0.04 and number > 10:
            row["id"] = f"k{number - draw.randint(1, 9)}"
        elif what < 0.05:
            rows.append("{" if kind == "jsonl" else "1,2")
        elif what < 0.06:
            rows.append("")
        elif what < 0.07:
            labels.append((comes, {"id": f"nobody{number}", "y": label}))
        elif what < 0.08:
            labels.append((comes + 5, truth))
        elif what < 0.09:
            labels.append((comes, "{" if kind == "jsonl" else "1,2,3"))
        elif what < 0.10:
            labels.append((comes, {"id": None, "y": label}))
        elif what < 0.11:
            labels.append((comes, {"id": f"k{number}", "y": None}))
        elif what < 0.12:
            labels.append((comes, ""))
        elif what < 0.15:
            comes = len(rows) - 200
        elif what < 0.19:
            comes = len(rows) + min(2500, 2 * records)
        rows.append(row)
        if not bad or draw.random() > 0.05:
            labels.append((comes, truth))
    _write(folder / f"records.{kind}", rows, ["id", "a", "b", "color", "y"])
    _write(folder / f"labels.{kind}", _in_step(sorted(labels, key=lambda one: one[0])), ["id", "y"])


def _in_step(labels: list[tuple[float, dict[str, Any] | str]]) -> list[dict[str, Any] | str]:
    """Leave a line empty where no label came while a record did: that is how the two files keep step."""
    lines: list[dict[str, Any] | str] = []
    for comes, label in labels:
        lines += [""] * (int(comes) - len(lines))
        lines.append(label)
    return lines


def _write(path: Path, rows: list[dict[str, Any] | str], columns: list[str]) -> None:
    with path.open("w") as file:
        if path.suffix == ".csv":
            file.write(",".join(columns) + "\n")
        for row in rows:
            if isinstance(row, str):
                file.write(row + "\n")
            elif path.suffix == ".csv":
                line = io.StringIO()
                csv.writer(line, lineterminator="\n").writerow([row[name] for name in columns])
                file.write(line.getvalue())
            else:
                file.write(json.dumps(row) + "\n")


def sections(kind: str = "jsonl", target_type: str = "str", **labels: Any) -> dict[str, Any]:
    """The sections of a configuration for them."""
    return {
        "source": {"kind": kind, "path": f"records.{kind}", "target": "y", "target_type": target_type},
        "labels": {
            "source": {"kind": kind, "path": f"labels.{kind}", "target": "y", "target_type": target_type},
            "key": "id",
            "max_pending": 250,
            **labels,
        },
        "checkpoint": {"directory": "out/state", "every_records": 300},
    }


def outcome(home: Home) -> tuple[Any, ...]:
    """Everything a run must have in common with another over the same two files."""
    labels = home.header()["labels"]
    return *home.result(), {name: labels[name] for name in sorted(set(labels) - {"clock", "bytes"})}


def adds_up(header: dict[str, Any]) -> None:
    """The account of a checkpoint, to the last record and label."""
    account, labels = header["source"]["account"], header["labels"]
    late = labels["account"]
    assert late["kept"] == late["matched"] + late["expired"] + labels["pending"]
    settled = sum(late[name] for name in ("matched", "unmatched", "doubled", "skipped", "dead"))
    assert late["taken"] == settled + labels["waiting"]
    at_once = account["learned"] - late["matched"]
    assert account["consumed"] == account["skipped"] + account["dead"] + account["unlabeled"] + at_once + late["kept"]
