"""The table of what was tried, as Markdown."""

from __future__ import annotations

import os
import platform
import re
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path

from benchmarks.report import table
from tests.chaos.failure import Failure, Outcome
from tests.chaos.settings import Setting

_MOST_SAID = 160


@dataclass
class Row:
    """All trials of a failure on a configuration."""

    failure: Failure
    setting: Setting
    trials: int = 0
    times: int = 0
    records: int = 0
    lost: int = 0
    doubled: int = 0
    same: bool | None = None
    said: str = ""
    faults: list[str] = field(default_factory=list)

    def add(self, number: int, outcome: Outcome | Exception) -> bool:
        """Take in a trial, or why it broke; tell whether all was as it must be."""
        self.trials += 1
        if isinstance(outcome, Exception):
            self.faults.append(f"trial {number}: {type(outcome).__name__}: {outcome}".partition("\n")[0])
            return False
        found = outcome.findings
        self.times += outcome.times
        self.records += found.records
        self.lost += found.lost
        self.doubled += found.doubled
        if found.digest is not None:
            self.same = found.digest and self.same is not False
        self.said = self.said or found.said
        self.faults += [f"trial {number}: {fault}" for fault in found.faults]
        return found.good

    def line(self) -> str:
        """Give the line of the table."""
        return table([str(cell) for cell in self.cells()], []).partition("\n")[0]

    def cells(self) -> list[object]:
        """Give a line of the table."""
        same = {None: "not promised", True: "yes", False: "NO"}[self.same]
        # Without the time and the names, which are others in every run.
        said = self.said.partition(" ")[2].strip().replace("|", "/")
        said = said if len(said) <= _MOST_SAID else said[: _MOST_SAID - 3] + "..."
        name = self.failure.name + (" (FAULTS)" if self.faults else "")
        return [name, self.setting.name, self.times, f"{self.records:,}", self.lost, self.doubled, same, f"`{said}`"]


def surroundings() -> str:
    """Say when and with what: the date, the processors, and the versions that matter."""
    pom = (Path(__file__).parents[1] / "kafka/pom.xml").read_text()
    kafka = re.search(r"<artifactId>kafka_[\d.]+</artifactId>\s*<version>([\d.]+)<", pom)
    assert kafka is not None
    date = time.strftime("%Y-%m-%d", time.gmtime())
    versions = f"Apache Kafka {kafka[1]}, kafka-python {version('kafka-python')}, Python {platform.python_version()}"
    return f"{date}, {os.cpu_count()} processors, {versions}"


def report(rows: Sequence[Row], command: str, where: str) -> str:
    """Write down what was tried."""
    header = ["failure", "configuration", "times", "records", "lost", "doubled", "same model", "what the log says"]
    total = ["all", "", *(sum(getattr(row, name) for row in rows) for name in ("times", "records", "lost", "doubled"))]
    lines = [
        "# Every failure, and what became of the records",
        f"`{command}` ({where}). Each record that was produced must be predicted exactly once downstream, or be a "
        "dead letter there exactly once, and be learned exactly once by the account in the last checkpoint; the model "
        "must be that of an undisturbed run over the same records (one partition, or `order: logged`).",
        table(header, [row.cells() for row in rows] + [[*total[:3], f"{total[3]:,}", *total[4:], "", ""]]),
    ]
    faults = [f"- {row.failure.name}, {row.setting.name}: {fault}" for row in rows for fault in row.faults]
    if faults:
        lines.append("## What is not as it must be\n\n" + "\n".join(faults))
    return "\n\n".join(lines)
