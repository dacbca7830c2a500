"""The commands: draw the list, and check that the tests of today kill its mutants."""

from __future__ import annotations

import argparse
import csv
import os
import re
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import SimpleQueue

from tests.mutants import listed
from tests.mutants.listed import KILLED, ROOT, Mutant

_LEFT_BEHIND = shutil.ignore_patterns(".git", ".venv", "out", ".*_cache", ".hypothesis", "build", "results")
#: Seconds that a run of tests may take. A mutant that hangs is killed.
_PATIENCE, _PATIENCE_WITH_ALL = 300, 1800


def killers() -> dict[int, str]:
    """Return the test that killed each mutant before."""
    with KILLED.open(newline="") as file:
        return {int(row["id"]): row["test"] for row in csv.DictReader(file) if row["verdict"] in ("killed", "hung")}


def write_killers(found: dict[int, str]) -> None:
    """Write which test kills which mutant; an empty one is that of a mutant that survives."""
    with KILLED.open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["id", "verdict", "test"])
        writer.writerows([number, "killed" if test else "survived", test] for number, test in sorted(found.items()))


def killer(copy: Path, mutant: Mutant, before: str) -> str:
    """Return the test that fails with a mutant in a copy of the checkout; empty if none does."""
    assert mutant.place is not None
    path = copy / mutant.key.file
    source, stat = path.read_bytes(), path.stat()
    path.write_bytes(mutant.place.put_into(source))
    try:
        function, file = before.partition("[")[0], before.partition("::")[0]
        folder = file.rpartition("/")[0]
        for tests in dict.fromkeys((before, function, file, folder)):
            if failed := _failed(copy, tests, fresh=mutant.place.compiled):
                return failed
        return ""
    finally:
        path.write_bytes(source)
        os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns))  # for the cache of compiled code


def _failed(copy: Path, tests: str, fresh: bool) -> str:
    """Run tests until one fails, without compiled code of the code before if it is mutated; return which one failed."""
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", "-p", "no:xdist"]
    command += ["-m", "not long and not integration", "--ignore=tests/spark", tests or "tests"]
    with tempfile.TemporaryDirectory() as cache:
        environment = {**os.environ, "PYTHONPATH": str(copy), **({"NUMBA_CACHE_DIR": cache} if fresh else {})}
        try:
            patience = _PATIENCE if tests else _PATIENCE_WITH_ALL
            done = subprocess.run(command, cwd=copy, env=environment, capture_output=True, text=True, timeout=patience)
        except subprocess.TimeoutExpired:
            return tests
    found = re.search(r"^(?:FAILED|ERROR) (.+?)(?: - |$)", done.stdout, re.MULTILINE)
    return found[1] if done.returncode in (1, 2, 3) and found else tests if done.returncode < 0 else ""


def check(mutants: list[Mutant], before: dict[int, str], jobs: int) -> dict[int, str]:
    """Return which test kills each mutant, some mutants at a time."""
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder, ThreadPoolExecutor(jobs) as pool:
        copies: SimpleQueue[Path] = SimpleQueue()
        for number in range(jobs):
            copies.put(shutil.copytree(ROOT, Path(folder, str(number)), ignore=_LEFT_BEHIND))

        def one(mutant: Mutant) -> tuple[int, str]:
            copy = copies.get()
            try:
                found = killer(copy, mutant, before.get(mutant.id, ""))
            finally:
                copies.put(copy)
            key = mutant.key
            shown = found or f"SURVIVES: {key.file} {key.function}: {key.before} -> {key.after}"
            print(mutant.id, shown, flush=True)
            return mutant.id, found

        return dict(pool.map(one, mutants))


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.mutants", description=__doc__)
    parser.add_argument("command", choices=["draw", "check"])
    parser.add_argument("--id", type=int, nargs="+", help="these mutants alone")
    parser.add_argument("--all", action="store_true", help="those that survived, too; write killed.csv again")
    parser.add_argument("-j", dest="jobs", type=int, default=2, help="mutants at a time")
    chosen = parser.parse_args()
    if chosen.command == "draw":
        listed.write(listed.sample())
        return
    before = {} if chosen.all else killers()
    wanted = [each for each in listed.read() if each.place and (chosen.all or each.id in (chosen.id or before))]
    found = check(wanted, killers(), chosen.jobs)
    if chosen.all:
        write_killers(found)
    survivors = [number for number, test in found.items() if not test]
    print(f"{len(found) - len(survivors)} killed, {len(survivors)} survive")
    if survivors and not chosen.all:
        raise SystemExit(1)


if __name__ == "__main__":
    main()
