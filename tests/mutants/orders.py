"""What the server of forks is to do."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from pathlib import Path

# Each needs processes, brokers or browsers of its own.
HEAVY = frozenset({"launcher", "installed", "site", "browser", "promtool", "prometheus"})


@dataclass
class Orders:
    """What to do, as one JSON file."""

    out: str
    jobs: int = 1
    mutants: dict[int, list[str]] = field(default_factory=dict)
    """For each mutant the tests to try, in this order. Without any, reach is measured instead."""
    seconds: dict[str, float] = field(default_factory=dict)
    """How long each test took without a mutant."""
    passed: list[str] = field(default_factory=list)
    """The tests whose reach is known."""
    heavy: bool | None = None
    """Whether they have one of the heavy fixtures: either by default."""
    most: float = 60.0
    """The processor time that all tests of one mutant may take."""
    longest: float = 60.0
    """The processor time a test may take while reach is measured."""

    def write(self, path: Path) -> None:
        path.write_text(json.dumps(asdict(self)))

    @classmethod
    def read(cls, path: Path) -> Orders:
        orders = cls(**json.loads(path.read_text()))
        orders.mutants = {int(number): tests for number, tests in orders.mutants.items()}
        return orders
