"""The commands: draw the list, measure which test kills which mutant, and check that tests still do."""

from __future__ import annotations

import argparse
import csv
import tempfile
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

from tests.mutants import listed
from tests.mutants.bench import Bench, Verdict
from tests.mutants.listed import KILLED, Mutant


def write_killed(verdicts: Iterable[Verdict], path: Path = KILLED) -> None:
    with path.open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["id", "verdict", "test"])
        for each in sorted(verdicts, key=lambda verdict: verdict.id):
            writer.writerow([each.id, each.verdict, each.test])


def read_killers(path: Path = KILLED) -> dict[int, str]:
    with path.open(newline="") as file:
        return {int(row["id"]): row["test"] for row in csv.DictReader(file) if row["verdict"] in ("killed", "hung")}


def measure(bench: Bench, mutants: list[Mutant]) -> dict[int, Verdict]:
    """Measure all, and write down what is known after each group of tests."""
    verdicts: dict[int, Verdict] = {}
    bench.prepare(mutants)
    for verdicts in bench.measure(mutants):
        write_killed(verdicts.values())
        print(_counted(verdicts.values()), flush=True)
    return verdicts


def check(bench: Bench, mutants: list[Mutant]) -> dict[int, Verdict]:
    """Try the test that killed each mutant before, then all others that reach it."""
    killers = read_killers()
    mutants = [each for each in mutants if each.id in killers]
    bench.prepare(mutants)
    verdicts = bench.retry(mutants, killers)
    print(f"by the tests of before: {_counted(verdicts.values())}", flush=True)
    left = [each for each in mutants if not verdicts[each.id].is_killed]
    for found in bench.measure(left) if left else ():
        verdicts |= found
        if all(each.is_killed or each.verdict == "gone" for each in verdicts.values()):
            break
    return verdicts


def _counted(verdicts: Iterable[Verdict]) -> str:
    return ", ".join(f"{count} {verdict}" for verdict, count in sorted(Counter(v.verdict for v in verdicts).items()))


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.mutants", description=__doc__)
    parser.add_argument("command", choices=["draw", "measure", "check"])
    parser.add_argument("-m", dest="expression", default="not long", help="the markers of the tests that count")
    parser.add_argument("--most", type=float, default=20.0, help="processor seconds for a mutant and a group")
    parser.add_argument("-j", dest="jobs", type=int, default=2, help="tests at a time")
    parser.add_argument(
        "--folder",
        type=Path,
        help="keeps what was measured, so that a run that was ended goes on: take a new one for new code",
    )
    chosen = parser.parse_args()
    if chosen.command == "draw":
        listed.write(listed.sample())
        return
    mutants = listed.read()
    folder = chosen.folder or Path(tempfile.mkdtemp(prefix="streamkernel-mutants-"))
    bench = Bench(folder, chosen.jobs, chosen.expression, chosen.most)
    verdicts = (check if chosen.command == "check" else measure)(bench, mutants)
    for each in mutants:
        if each.id in verdicts and not verdicts[each.id].is_killed:
            key = each.key
            print(f"{each.id} {verdicts[each.id].verdict}: {key.file} {key.function}: {key.before} -> {key.after}")
    print(_counted(verdicts.values()))
    if chosen.command == "check" and any(not each.is_killed and each.verdict != "gone" for each in verdicts.values()):
        raise SystemExit(1)


if __name__ == "__main__":
    main()
