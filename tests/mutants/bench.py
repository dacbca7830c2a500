"""Measure which tests reach and kill mutants, group after group of tests, and go on where a run was ended."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from tests.mutants import without_vectors
from tests.mutants.instrument import instrument
from tests.mutants.listed import ROOT, Mutant
from tests.mutants.orders import Orders
from tests.mutants.runs import Reach, read_lines, read_reach, run

_KERNELS = ["tests/compute", "tests/kernels", "tests/growth", "tests/window", "tests/expansion", "tests/adaptive"]
_NO_SPARK = ["--ignore=tests/spark", "--ignore=streamkernel/spark"]


@dataclass(frozen=True)
class Group:
    """Some tests; uncompiled ones run the kernels as plain Python, where each must end within `longest` seconds."""

    name: str
    paths: list[str]
    heavy: bool | None = False
    compiled: bool = True
    longest: float = 60.0


# Cheap ones first: most mutants are killed by them.
GROUPS = [
    Group("records", ["connectors", "streamkernel", "tests/connectors", "tests/registry", "tests/records"]),
    Group("daemon", ["tests/daemon", "tests/kernels"]),
    Group("uncompiled", _KERNELS, compiled=False, longest=20.0),
    Group("models", ["tests"]),
    Group("processes", ["tests"], heavy=True),
]


@dataclass
class Verdict:
    """What became of a mutant: killed, hung (which counts as killed), survived, not reached or gone."""

    id: int
    verdict: str
    test: str = ""
    tried: set[str] = field(default_factory=set)

    @property
    def is_killed(self) -> bool:
        return self.verdict in ("killed", "hung")


class Bench:
    """Two instrumented copies of the checkout, and what was measured in them."""

    def __init__(self, folder: Path, jobs: int, expression: str, most: float) -> None:
        self._folder = folder
        self._jobs = jobs
        self._most = most
        self._marked = ["-m", expression, *_NO_SPARK]

    def prepare(self, mutants: list[Mutant]) -> None:
        """Write the copies, unless they are there."""
        self._folder.mkdir(parents=True, exist_ok=True)
        for compiled in (True, False):
            if not self._copy(compiled).exists():
                instrument(_places(mutants, compiled), self._copy(compiled))
                if not compiled:
                    without_vectors.install(self._copy(compiled))

    def measure(self, mutants: list[Mutant]) -> Iterator[dict[int, Verdict]]:
        """Hunt mutants with one group of tests after the other; yield what is known after each."""
        verdicts = {each.id: Verdict(each.id, "gone" if each.place is None else "not reached") for each in mutants}
        for group in GROUPS:
            chosen = [each.id for each in _places(mutants, group.compiled)]
            reach = self._reach(group)
            self._add(verdicts, f"{group.name}.hunt")
            tests = {
                each: [test for test in reach.tests_for(each) if test not in verdicts[each].tried]
                for each in chosen
                if not verdicts[each].is_killed
            }
            self._hunt(f"{group.name}.hunt", tests, reach.seconds, compiled=group.compiled)
            self._add(verdicts, f"{group.name}.hunt")
            yield verdicts

    def retry(self, mutants: list[Mutant], killers: dict[int, str]) -> dict[int, Verdict]:
        """Try the test that killed each mutant before, or those like it where its name is another by now."""
        verdicts = {each.id: Verdict(each.id, "not reached") for each in mutants}
        for compiled in (True, False):
            name = "again" if compiled else "again-uncompiled"
            self._add(verdicts, name)
            left = [each.id for each in _places(mutants, compiled) if not verdicts[each.id].is_killed]
            tests = {each: [killers[each]] for each in left}
            self._hunt(name, tests, {}, compiled=compiled)
            self._add(verdicts, name)
        return verdicts

    def _reach(self, group: Group) -> Reach:
        out, done = self._folder / f"{group.name}.out", self._folder / f"{group.name}.done"
        if not done.exists():
            for left in self._folder.glob(f"{group.name}.*"):
                left.unlink()
            known = [each.name for each in GROUPS if each.compiled is group.compiled and each is not group]
            passed = set(read_reach(self._folder, known).seconds)
            orders = Orders(str(out), 1, heavy=group.heavy, longest=group.longest, passed=sorted(passed))
            paths = [each for each in group.paths if (ROOT / each).exists()]
            self._run(orders, group.name, paths, compiled=group.compiled, trace=True)
            done.touch()
        return read_reach(self._folder, [group.name])

    def _hunt(self, name: str, tests: dict[int, list[str]], seconds: dict[str, float], *, compiled: bool) -> None:
        tests = {mutant: some for mutant, some in tests.items() if some}
        files = {each.partition("::")[0] for some in tests.values() for each in some}
        paths = sorted(each for each in files if (ROOT / each).exists())
        if paths:
            orders = Orders(
                str(self._folder / f"{name}.out"), self._jobs, mutants=tests, seconds=seconds, most=self._most
            )
            self._run(orders, name, paths, compiled=compiled, trace=False)

    def _run(self, orders: Orders, name: str, paths: list[str], *, compiled: bool, trace: bool) -> None:
        run(self._copy(compiled), orders, name, [*paths, *self._marked], compiled=compiled, trace=trace)

    def _add(self, verdicts: dict[int, Verdict], name: str) -> None:
        """Add what a hunt has found: a later test may kill what survived earlier ones."""
        for line in read_lines(self._folder / f"{name}.out"):
            before = verdicts.get(line.get("mutant", 0))
            if before is not None and not before.is_killed:
                before.verdict, before.test = line["verdict"], line["test"]
                before.tried.update(line["tried"])

    def _copy(self, compiled: bool) -> Path:
        return self._folder / ("compiled" if compiled else "uncompiled")


def _places(mutants: Iterable[Mutant], compiled: bool) -> list[Mutant]:
    """Return the mutants that are measured with compiled kernels, or those without: the kernels themselves."""
    return [each for each in mutants if each.place is not None and each.place.compiled is not compiled]
