"""Daemons of all kinds, and a service, that have learned a stream, wait for more of it, and serve their metrics."""

from __future__ import annotations

import csv
import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tests.daemon.conftest import Home, Launcher, Running, write_stream
from tests.daemon.labels_stream import sections, write_pair
from tests.daemon.refits import refitted
from tests.daemon.service import DIRECT, Client
from tests.daemon.test_std import PROCESS

_GROWING = [{"streamkernel.KernelClassifier": {"seed": 1}}]


@dataclass(frozen=True)
class Scraped:
    """A daemon, and how it is given more to do."""

    daemon: Running
    more: Callable[[], None]

    @property
    def address(self) -> str:
        """Where it serves its metrics; waits until it does."""
        return self.daemon.wait_for(r"serving (?:metrics|predictions) at http://(127\.0\.0\.1:\d+)/")[1]


def all_kinds(homes: Callable[[str], Home], launcher: Launcher) -> dict[str, Scraped]:
    """Start a daemon with each kind of model."""
    adaptive = [{"streamkernel.AdaptiveKernelClassifier": {"seed": 1}}]
    novelty = [{"streamkernel.KernelNoveltyDetector": {"seed": 1}}]
    ratio = [{"streamkernel.KernelDensityRatio": {"p": "yes", "q": "no", "seed": 1}}]
    targets = [{"streamkernel.KernelMultiTargetRegressor": {"seed": 1}}]
    several = {"one": _GROWING, "other": _GROWING}
    return {
        "growing": _with_labels(homes("growing"), launcher, model=_GROWING),
        "adaptive": _with_labels(homes("adaptive"), launcher, model=adaptive),
        "several": _with_labels(homes("several"), launcher, model=None, models=several, publish="one"),
        "refitted": _of_rings(homes("refitted"), launcher, model=refitted()),
        "novelty": _of_rings(homes("novelty"), launcher, model=novelty),
        "ratio": _of_rings(homes("ratio"), launcher, model=ratio),
        "process": _of_numbers(homes("process"), launcher, PROCESS),
        "targets": _of_numbers(homes("targets"), launcher, targets, target=["y", "z"]),
    }


def service(home: Home, launcher: Launcher) -> Scraped:
    """Start a service without a run that learns: it has metrics of a model all the same."""
    home.configure(**DIRECT)
    daemon = launcher.start(home, "serve", "config.yaml")

    def more() -> None:
        client = Client(int(scraped.address.rpartition(":")[2]))
        client.ask("/learn", {"a": 0.25, "y": "yes"})
        client.ask("/predict", {"a": 0.25})
        client.close()

    scraped = Scraped(daemon, more)
    return scraped


def _with_labels(home: Home, launcher: Launcher, **models: Any) -> Scraped:
    write_pair(home.folder, "jsonl", 300)
    labels = sections()["labels"]
    labels["source"]["follow"] = True
    return _of_rings(home, launcher, labels=labels, **models)


def _of_rings(home: Home, launcher: Launcher, **given: Any) -> Scraped:
    write_stream(home.folder / "stream.csv", 300)
    draw = random.Random(1)

    def row() -> list[Any]:
        a, b = draw.gauss(0, 1), draw.gauss(0, 1)
        return [a, b, "red", "yes" if a * a + b * b < 1.2 else "no"]

    return _started(home, launcher, row, **given)


def _of_numbers(home: Home, launcher: Launcher, model: Any, **given: Any) -> Scraped:
    (home.folder / "stream.csv").write_text("a,b,y,z\n")
    draw = random.Random(1)

    def row() -> list[Any]:
        a, b = draw.gauss(0, 1), draw.gauss(0, 1)
        return [a, b, 2 * a + b + draw.gauss(0, 0.1), a * b]

    return _started(home, launcher, row, target_type="float", model=model, **given)


def _started(
    home: Home,
    launcher: Launcher,
    row: Callable[[], list[Any]],
    target: str | list[str] = "y",
    target_type: str = "str",
    **given: Any,
) -> Scraped:
    path = home.folder / "stream.csv"

    def more() -> None:
        with path.open("a", newline="") as file:
            csv.writer(file, lineterminator="\n").writerows(row() for _ in range(20))

    source = {"kind": "csv", "path": "stream.csv", "target": target, "target_type": target_type, "follow": True}
    home.configure(source=source, metrics={"port": 0}, **given)
    return Scraped(launcher.start(home, "run", "config.yaml"), more)
