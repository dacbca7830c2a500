"""Fuzzing with a time limit.

    python -m benchmarks.fuzz [--minutes M] [--seed N] [--target NAME] [--out DIR]
    python -m benchmarks.fuzz --target NAME --seed N --case K

Each target has the same share of the time, in a process of its own that may take 8 GiB of addresses. Found is what
dies, takes longer than five seconds, grows past a bound, raises what the daemon does not know, or leaves something
behind that does not add up. A case can be tried again by its number. The status is 1 where something was found.
"""

import sys
import tempfile
from pathlib import Path

from benchmarks.command import asked
from benchmarks.fuzz.child import draw_of, made
from benchmarks.fuzz.watch import GROWTH_MB, HANG_SECONDS, Tried, tried
from benchmarks.report import publish, table

TARGETS = {
    "records": "benchmarks.fuzz.records.Records",
    "checkpoints": "benchmarks.fuzz.checkpoints.Checkpoints",
    "marks": "benchmarks.fuzz.marks.Marks",
    "configurations": "benchmarks.fuzz.configurations.Configurations",
    "http": "benchmarks.fuzz.http.Http",
    "values": "benchmarks.fuzz.values.Values",
    "scanners": "benchmarks.fuzz.scanners.Scanners",
}
_MOST_SHOWN = 20


def report(results: dict[str, Tried], seed: int) -> list[str]:
    """Return the parts of the page: the table, and what was found."""
    rows = [
        [name, f"{one.cases:,}", f"{one.seconds:.0f}", f"{max(one.growth_mb, 0):.0f}", len(one.found)]
        for name, one in results.items()
    ]
    bounds = f"Nothing may die, take longer than {HANG_SECONDS:g} s, or grow by more than {GROWTH_MB:.0f} MB."
    found = [
        "\n".join(f"- {name}, case {case}: {' '.join(said.split())}" for case, said in one.found[:_MOST_SHOWN])
        for name, one in results.items()
    ]
    return [f"Seed {seed}. {bounds}", table(["target", "cases", "seconds", "growth, MB", "found"], rows), *found]


def main() -> int:
    """Read the arguments, fuzz, and report."""
    target = {"choices": TARGETS, "action": "append"}
    given = asked(__doc__, threads=None, minutes=10.0, seed=1, target=target, case={"type": int})
    names = given.target or list(TARGETS)
    with tempfile.TemporaryDirectory() as folder:
        if given.case is not None:
            chosen = made(TARGETS[names[0]], Path(folder) / "work")
            print(chosen.case(draw_of(given.seed, TARGETS[names[0]], given.case)))
            chosen.close()
            return 0
        seconds = 60.0 * given.minutes / len(names)
        results = {name: tried(TARGETS[name], given.seed, seconds, Path(folder) / name) for name in names}
    publish(given, "fuzz", "Fuzzing", *report(results, given.seed))
    return int(any(one.found for one in results.values()))


if __name__ == "__main__":
    sys.exit(main())
