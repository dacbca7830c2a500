"""Start pytest in an instrumented copy, and read what it found."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.mutants.orders import Orders


@dataclass
class Reach:
    """Which tests were run, how long each takes, and which of them come to each mutant."""

    seconds: dict[str, float] = field(default_factory=dict)
    by_mutant: dict[int, set[str]] = field(default_factory=lambda: defaultdict(set))

    def tests_for(self, mutant: int) -> list[str]:
        """Return the tests that reach a mutant: short ones first, and of these such as reach little else."""
        breadth: dict[str, int] = defaultdict(int)
        for tests in self.by_mutant.values():
            for each in tests:
                breadth[each] += 1
        return sorted(self.by_mutant[mutant], key=lambda each: (self.seconds[each] + 0.002 * breadth[each], each))


def run(copy: Path, orders: Orders, name: str, arguments: Iterable[str], *, compiled: bool, trace: bool) -> None:
    """Run the server in a copy; what it says goes to a log beside it."""
    path = copy.parent / f"{name}.orders"
    orders.write(path)
    environment = {
        **os.environ,
        "MUTANTS_ORDERS": str(path),
        "PYTHONPATH": str(copy),
        "OPENBLAS_NUM_THREADS": "1",
        **({"MUTANTS_TRACE": str(copy.parent / f"{name}.trace")} if trace else {}),
        **({} if compiled else {"NUMBA_DISABLE_JIT": "1"}),
    }
    command = [sys.executable, "-m", "pytest", "-p", "tests.mutants.server", "--capture=sys", "-p", "no:cacheprovider"]
    if not compiled:  # numpy warns where compiled code is silent
        command += ["-W", "ignore::RuntimeWarning"]
    with (copy.parent / f"{name}.log").open("w") as log:
        subprocess.run([*command, *arguments], cwd=copy, env=environment, stdout=log, stderr=log, check=False)


def read_lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def read_reach(folder: Path, names: Iterable[str]) -> Reach:
    """Read what runs of these names found."""
    reach = Reach()
    for name in names:
        users: dict[str, list[str]] = defaultdict(list)
        for line in read_lines(folder / f"{name}.out"):
            for each in line.get("fixtures", ()):
                users[each].append(line["test"])
            # One that fails here may mind the measuring alone: the hunt looks whether it passes without a mutant.
            if line.get("outcome") in ("passed", "failed"):
                reach.seconds[line["test"]] = line["seconds"]
        for trace in folder.glob(f"{name}.trace.*[0-9]"):
            for line in trace.read_text().splitlines():
                number, _, test = line.partition("\t")
                reach.by_mutant[int(number)].update(users.get(test, [test]))
    for number, tests in reach.by_mutant.items():
        reach.by_mutant[number] = {each for each in tests if each in reach.seconds}
    return reach
