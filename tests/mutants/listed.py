"""The committed list: sampled by seed, read, and found again in the code of today."""

from __future__ import annotations

import csv
import math
import random
from collections import defaultdict
from dataclasses import astuple, dataclass, fields
from pathlib import Path

from tests.mutants.candidates import Candidate, Key, find_candidates

ROOT = Path(__file__).parents[2]
LIST = Path(__file__).with_name("mutants.csv")
KILLED = Path(__file__).with_name("killed.csv")

_SEED = 32
_LEAST = 10
_LEAST_COMPUTED = 70
_PER_ROOT_OF_LINES = 0.27
_LEFT_OUT = ("streamkernel/spark/",)


@dataclass(frozen=True)
class Mutant:
    """A line of the list, and where it is in the code; nowhere if it is gone."""

    id: int
    key: Key
    place: Candidate | None


def sample(root: Path = ROOT) -> list[Key]:
    """Draw mutants from every package: more from larger ones, each kind of mutation equally likely."""
    draw = random.Random(_SEED)
    groups: dict[str, list[str]] = defaultdict(list)
    for top in ("connectors", "streamkernel"):
        for path in sorted((root / top).rglob("*.py")):
            file = path.relative_to(root).as_posix()
            if not file.startswith(_LEFT_OUT):
                groups["/".join(file.split("/")[:-1][:3])].append(file)
    keys = []
    for group, files in sorted(groups.items()):
        lines = sum(len((root / each).read_text().splitlines()) for each in files)
        least = _LEAST_COMPUTED if group == "streamkernel/compute" else _LEAST
        candidates = [each for file in files for each in find_candidates(root, file)]
        keys += _draw(draw, candidates, max(least, math.ceil(_PER_ROOT_OF_LINES * math.sqrt(lines))))
    return keys


def _draw(draw: random.Random, candidates: list[Candidate], count: int) -> list[Key]:
    """Draw mutants of which no two overlap."""
    by_operator: dict[str, list[Candidate]] = defaultdict(list)
    for each in candidates:
        by_operator[each.key.operator].append(each)
    drawn: list[Candidate] = []
    while len(drawn) < count and by_operator:
        operator = draw.choice(sorted(by_operator))
        left = by_operator[operator]
        one = left.pop(draw.randrange(len(left)))
        if not left:
            del by_operator[operator]
        if not any(one.key.file == each.key.file and one.overlaps(each) for each in drawn):
            drawn.append(one)
    return sorted((each.key for each in drawn), key=lambda key: astuple(key))


def write(keys: list[Key], path: Path = LIST) -> None:
    with path.open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["id", *(each.name for each in fields(Key))])
        writer.writerows([number, *astuple(key)] for number, key in enumerate(keys, 1))


def read(root: Path = ROOT, path: Path = LIST) -> list[Mutant]:
    """Return every mutant of the list with its place in the code below a root."""
    with path.open(newline="") as file:
        rows = list(csv.DictReader(file))
    places: dict[Key, Candidate] = {}
    functions: dict[str, set[str]] = defaultdict(set)
    for row in rows:
        functions[row["file"]].add(row["function"])
    for name, wanted in functions.items():
        if (root / name).exists():
            places |= {each.key: each for each in find_candidates(root, name, wanted)}
    mutants = []
    for row in rows:
        number = int(row.pop("id"))
        key = Key(**{**row, "index": int(row["index"])})
        mutants.append(Mutant(number, key, places.get(key)))
    return mutants
