"""The commands: draw the list, measure which test kills which mutant, and check that they still do."""

from __future__ import annotations

import argparse
import csv
import json
import tempfile
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from tests.mutants import listed
from tests.mutants.instrument import instrument
from tests.mutants.listed import KILLED, ROOT, Mutant
from tests.mutants.runs import Reach, read_reach, run
from tests.mutants.server import Orders

# The tests that are tried without compiled code, where most others would take hours.
_UNCOMPILED = ["tests/compute", "tests/kernels", "tests/growth", "tests/window", "tests/adaptive", "tests/expansion"]
_UNCOMPILED_SECONDS = 20.0
_EVERYTHING = ["connectors", "streamkernel", "tests", "--ignore=tests/spark", "--ignore=streamkernel/spark"]


@dataclass(frozen=True)
class Verdict:
    """What became of a mutant: killed, hung (which counts as killed), survived, not reached or gone."""

    id: int
    verdict: str
    test: str = ""
    tried: int = 0
    tests: int = 0

    @property
    def is_killed(self) -> bool:
        return self.verdict in ("killed", "hung")


class Bench:
    """Two instrumented copies of the checkout, and what is run in them."""

    def __init__(self, folder: Path, jobs: int, expression: str) -> None:
        self._folder = folder
        self._jobs = jobs
        self._marked = ["-m", expression] if expression else []

    def prepare(self, mutants: list[Mutant]) -> None:
        self._folder.mkdir(parents=True, exist_ok=True)
        for compiled in (True, False):
            chosen = [each for each in mutants if each.place is not None and each.place.compiled is not compiled]
            instrument(chosen, self._copy(compiled))

    def reach(self, *, compiled: bool, names: Iterable[str] = ()) -> Reach:
        """Measure which tests come to which mutants, or read what runs of these names have measured."""
        if not names:
            names = [f"reach-{'compiled' if compiled else 'uncompiled'}"]
            for left in self._folder.glob(f"{names[0]}.*"):
                left.unlink()
            longest = 60.0 if compiled else _UNCOMPILED_SECONDS
            orders = Orders(str(self._folder / f"{names[0]}.out"), self._jobs, longest=longest)
            paths = _EVERYTHING if compiled else _UNCOMPILED
            paths = [each for each in paths if each.startswith("-") or (ROOT / each).exists()]
            run(self._copy(compiled), orders, names[0], [*paths, *self._marked], compiled=compiled, trace=True)
        return read_reach(self._folder, names)

    def hunt(self, tests: dict[int, list[str]], seconds: dict[str, float], *, compiled: bool) -> list[Verdict]:
        """Look for a test that kills each mutant, in the order given."""
        name = f"hunt-{'compiled' if compiled else 'uncompiled'}"
        out = self._folder / f"{name}.out"
        out.unlink(missing_ok=True)
        files = sorted({each.partition("::")[0] for some in tests.values() for each in some})
        files = [each for each in files if (ROOT / each).exists()]
        if files:
            orders = Orders(str(out), self._jobs, mutants=tests, seconds=seconds)
            run(self._copy(compiled), orders, name, [*files, *self._marked], compiled=compiled, trace=False)
        return read_verdicts(out)

    def _copy(self, compiled: bool) -> Path:
        return self._folder / ("compiled" if compiled else "uncompiled")


def read_verdicts(out: Path) -> list[Verdict]:
    lines = map(json.loads, out.read_text().splitlines()) if out.exists() else ()
    return [
        Verdict(line["mutant"], line["verdict"], line["test"], line["tried"], line["tests"])
        for line in lines
        if "mutant" in line
    ]


def measure(bench: Bench, mutants: list[Mutant], names: dict[bool, list[str]] | None = None) -> dict[int, Verdict]:
    """Hunt mutants with every test that reaches them."""
    verdicts = {each.id: Verdict(each.id, "gone" if each.place is None else "not reached") for each in mutants}
    for compiled in (True, False):
        chosen = [each.id for each in mutants if each.place is not None and each.place.compiled is not compiled]
        if chosen:
            reach = bench.reach(compiled=compiled, names=names[compiled] if names else ())
            tests = {each: reach.tests_for(each) for each in chosen if reach.by_mutant.get(each)}
            verdicts |= {each.id: each for each in bench.hunt(tests, reach.seconds, compiled=compiled)}
    return verdicts


def check(bench: Bench, mutants: list[Mutant], killers: dict[int, str]) -> dict[int, Verdict]:
    """Try the test that killed each mutant before, then all others that reach it."""
    verdicts: dict[int, Verdict] = {}
    for compiled in (True, False):
        tests = {
            each.id: [killers[each.id]]
            for each in mutants
            if each.place is not None and each.place.compiled is not compiled
        }
        verdicts |= {each.id: each for each in bench.hunt(tests, {}, compiled=compiled)}
    left = [each for each in mutants if each.id not in verdicts or not verdicts[each.id].is_killed]
    return verdicts | measure(bench, left)


def write_killed(verdicts: Iterable[Verdict], path: Path = KILLED) -> None:
    with path.open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["id", "verdict", "test", "tests tried", "tests that reach it"])
        for each in sorted(verdicts, key=lambda verdict: verdict.id):
            writer.writerow([each.id, each.verdict, each.test, each.tried, each.tests])


def read_killers(path: Path = KILLED) -> dict[int, str]:
    with path.open(newline="") as file:
        return {int(row["id"]): row["test"] for row in csv.DictReader(file) if row["verdict"] in ("killed", "hung")}


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.mutants", description=__doc__)
    parser.add_argument("command", choices=["draw", "measure", "check"])
    parser.add_argument("-m", dest="expression", default="not long", help="the markers of the tests that count")
    parser.add_argument("-j", dest="jobs", type=int, default=2, help="tests at a time")
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()) / "streamkernel-mutants")
    chosen = parser.parse_args()
    if chosen.command == "draw":
        listed.write(listed.sample())
        return
    mutants = listed.read()
    bench = Bench(chosen.folder, chosen.jobs, chosen.expression)
    if chosen.command == "check":
        killers = read_killers()
        mutants = [each for each in mutants if each.id in killers]
    bench.prepare(mutants)
    verdicts = check(bench, mutants, killers) if chosen.command == "check" else measure(bench, mutants)
    if chosen.command == "measure":
        write_killed(verdicts.values())
    for each in mutants:
        verdict = verdicts[each.id]
        if not verdict.is_killed:
            key = each.key
            print(
                f"{each.id} {verdict.verdict}: {key.file} {key.function} ({key.operator}) {key.before} -> {key.after}"
            )
    counts = Counter(each.verdict for each in verdicts.values())
    print(", ".join(f"{count} {verdict}" for verdict, count in sorted(counts.items())))
    if chosen.command == "check" and counts["survived"] + counts["not reached"]:
        raise SystemExit(1)


if __name__ == "__main__":
    main()
