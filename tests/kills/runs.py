"""Runs over files that kills are tried on: what they read, learn and write, and what two must have in common."""

from __future__ import annotations

import gzip
import json
import math
import os
import random
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import zstandard

from tests.daemon.conftest import Home
from tests.daemon.labels_stream import sections as late_labels
from tests.daemon.labels_stream import write_pair
from tests.daemon.refits import refitted
from tests.kills.simulated import runs

HEADER = "id,a,b,color,y,z\n"
PIECE = 100
REPLAY = ("replay", "mended.jsonl", "config.yaml")
MENDED = "77777,0.5,0.25,red,yes,1.5"

SMALL: dict[str, Any] = {"n_features": 16, "metric_schedule": [100, 300], "buffer_size": 200, "memory": 300, "seed": 1}
GROWING = [{"streamkernel.KernelClassifier": {"seed": 1, "max_features": 64}}]
RIVER = [
    {"river.compose.Discard": {"args": ["color"]}},
    "river.preprocessing.StandardScaler",
    "river.linear_model.LogisticRegression",
]
OPERATOR = {"streamkernel.gaussian_process.VarianceOperator": {"block_size": 4, "max_features": 32}}
PROCESS = {"streamkernel.GaussianProcessRegressor": {"n_features": 16, "seed": 1, "variance": OPERATOR}}
MODELS: dict[str, dict[str, Any]] = {
    "growing": {"model": GROWING},
    "adaptive": {"model": [{"streamkernel.AdaptiveKernelClassifier": {"lags": 1, **SMALL}}]},
    "behind a scaler": {
        "model": [*RIVER[:2], {"streamkernel.AdaptiveKernelClassifier": {"n_features": 16, "seed": 1}}]
    },
    "River's": {"model": RIVER},
    "refitted": {"model": refitted(window=200, every=150)},
    "novelty": {"model": [{"streamkernel.KernelNoveltyDetector": {"max_features": 64, "seed": 1}}]},
    "ratio": {"model": [{"streamkernel.KernelDensityRatio": {"p": True, "q": False, "max_features": 64, "seed": 1}}]},
    "several": {"model": None, "models": {"champion": GROWING, "challenger": RIVER}},
    "numbers": {"model": [{"streamkernel.AdaptiveKernelRegressor": {"lags": 3, **SMALL}}]},
    "Gaussian process": {"model": [PROCESS]},
    "predict": {"model": GROWING, "mode": "predict"},
}
"""By name: the sections of a configuration."""

SOURCES = ("file", "followed", "several", "watched", "late labels as jsonl", "late labels as csv")
OUTPUTS = ("jsonl", "csv", "parquet", "jsonl.gz", "jsonl.zst", "csv.gz")


@dataclass(frozen=True)
class Features:
    """What a run does."""

    model: str
    source: str = "file"
    output: str = "jsonl"
    dead: str = "jsonl"
    include: bool = False
    in_time: bool = False
    warm: bool = False
    every: int = 100
    keep: int = 3

    @property
    def numbers(self) -> bool:
        return self.model in ("numbers", "Gaussian process")

    @property
    def classes(self) -> bool:
        return not self.numbers and self.model not in ("novelty", "ratio")

    @property
    def late(self) -> bool:
        return self.source.startswith("late labels")

    @property
    def endless(self) -> bool:
        return self.source in ("followed", "watched")

    @property
    def possible(self) -> bool:
        """Whether a configuration may say so; late labels here are classes, and Parquet has one type for both."""
        if self.output == "parquet" and self.model in ("novelty", "ratio"):
            return False
        if self.model == "predict":
            return not (self.late or self.warm)
        return not (self.late and not self.classes) and not (self.warm and self.source == "followed")

    @property
    def points(self) -> dict[str, int]:
        """The fault points it passes, and a count that it comes to."""
        found = {"consumed": 150, "mid-batch": 5, "flushed": 2, "committing": 2}
        found |= dict.fromkeys(("checkpoint-writing", "checkpoint-before-rename", "checkpoint-after-rename"), 2)
        if self.in_time and self.output in ("jsonl", "csv"):
            found["published"] = 100
        if self.warm:
            found["seam"] = 2
            if self.model == "refitted":
                found["refitted"] = 1
        return found


def rows(first: int, count: int) -> str:
    """Write CSV records, some of every kind that is not learned."""
    draw = random.Random(first)
    lines = []
    for number in range(first, first + count):
        kind, a, b = draw.random(), draw.gauss(0, 1), draw.gauss(0, 1)
        label = "yes" if (a * a + b * b < 1.2) != (draw.random() < 0.05) else "no"
        good = [f"{number:05d}", f"{a:.6f}", f"{b:.6f}", draw.choice(["red", "green", ""]), label]
        good.append(f"{math.sin(2 * a) + b:.6f}")
        if kind < 0.02:
            good = good[:2]
        elif kind < 0.04:
            good[1] = "inf"
        elif kind < 0.06:
            good = []
        elif kind < 0.09:
            good[4:] = ["", ""]
        elif kind < 0.12:
            good[1] = ""
        lines.append(",".join(good) + "\n")
    return "".join(lines)


class Run:
    """A home, what arrives in it, and how its run is started over."""

    def __init__(self, folder: Path, features: Features, trained: Path | None = None) -> None:
        folder.mkdir()
        self.home = Home(folder)
        self.features = features
        self.n_records = 0
        self._n_pieces = 0
        self._configure(trained)
        if features.late:
            write_pair(folder, features.source.split()[-1], 3 * PIECE)
        else:
            for _ in range(4 if features.source in ("file", "several") else 2):
                self.arrives()
        if features.warm:
            (folder / "warm.csv").write_text(HEADER + rows(10_000, 2 * PIECE))
        if features.source == "followed":  # the file that it begins with is noted now: it may be renamed before long
            assert runs(self.home, "run", "config.yaml", "--max-records", "0") == 0

    def _configure(self, trained: Path | None) -> None:
        its = self.features
        target = {"target": "z", "target_type": "float"} if its.numbers else {"target": "y", "target_type": "bool"}
        csv = {"kind": "csv", **target, "inputs": {"exclude": ["id", "y" if its.numbers else "z"]}}
        paths: dict[str, dict[str, Any]] = {
            "file": {"path": "stream.csv"},
            "followed": {"path": "stream.csv", "follow": True},
            "several": {"path": "in/part-*"},
            "watched": {"path": "in", "watch": True},
        }
        sections: dict[str, Any] = {"source": {**csv, **paths.get(its.source, {})}}
        if its.late:
            sections = late_labels(its.source.split()[-1], target_type="bool", max_pending=120)
        if its.warm:
            warm = {**csv, "path": "warm.csv"}
            if its.late:
                warm["inputs"] = {"exclude": ["id", "z"]}
            sections["warm_start"] = {"source": warm}
        if trained is not None and its.model == "predict":
            sections["serve_from"] = str(trained)
        kind, _, suffix = its.output.partition(".")
        output: dict[str, Any] = {"kind": kind, "path": "out/predictions" + (f".{suffix}" if suffix else "")}
        output |= {"include": ["id"]} if its.include else {}
        output |= {"classes": [True]} if its.include and kind != "jsonl" and its.classes else {}
        output |= {"models": "all"} if its.model == "several" else {}
        output |= {"flush_seconds": 1e-6} if its.in_time and kind != "parquet" else {}
        dead = {"kind": its.dead.partition(".")[0], "path": f"out/dead.{its.dead}"}
        sections["predictions"] = output
        sections["dead_letters"] = dead if its.dead != "none" else {"kind": "none"}
        sections["checkpoint"] = {"directory": "out/state", "every_records": its.every, "keep": its.keep}
        self.home.configure(**{**sections, **MODELS[its.model]})

    def arrives(self, rotate: bool = False) -> None:
        """Let more records arrive: in the file, in another one, or in a new one of the same name."""
        text, number, folder = rows(self.n_records, PIECE), self._n_pieces, self.home.folder
        if self.features.source in ("several", "watched"):
            (folder / "in").mkdir(exist_ok=True)
            path = folder / f"in/part-{8 + number}.csv"
            data = (HEADER + text).encode()
            if number % 2:
                path, data = path.with_name(f"{path.name}.gz"), gzip.compress(data, mtime=0)
            path.write_bytes(data)
            os.utime(path, ns=(number, number))
        else:
            path = folder / "stream.csv"
            if rotate:
                for age in range(number, 0, -1):
                    if (older := folder / f"stream.csv.{age}").exists():
                        older.rename(folder / f"stream.csv.{age + 1}")
                path.rename(folder / "stream.csv.1")
            with path.open("a") as file:
                file.write(text if path.stat().st_size else HEADER + text)
        self.n_records += PIECE
        self._n_pieces += 1

    @property
    def consumed(self) -> int:
        """How many records the newest checkpoint knows, those of a warm start included."""
        if not list(self.home.folder.glob("out/state/*.skc")):
            return 0
        header = self.home.header()
        return int(
            header["source"]["account"]["consumed"]
            + (header.get("warm_start") or {"account": {"consumed": 0}})["account"]["consumed"]
        )

    @property
    def _left(self) -> int:
        return self.n_records + self.features.warm * 2 * PIECE - self.consumed

    def command(self) -> Sequence[str]:
        """Return the command that takes all there is, and ends."""
        return ("run", "config.yaml", *(["--max-records", str(self._left)] if self.features.endless else []))

    def takes(self, records: int) -> None:
        """Go on for so many records, or as many as there are."""
        most = min(records, self._left) if self.features.endless else records
        assert runs(self.home, "run", "config.yaml", "--max-records", str(most)) == 0

    def finish(self) -> None:
        """Go on until all there is was taken."""
        assert runs(self.home, *self.command()) == 0

    def mend(self) -> bool:
        """Write the dead letters of the stream with sound records; False where there are none to replay."""
        if self.features.dead != "jsonl" or self.features.late or self.features.model == "predict":
            return False
        letters = [one for one in self.home.lines("out/dead.jsonl") if "source" not in one["position"]]
        text = "".join(json.dumps({**letter, "raw": MENDED}) + "\n" for letter in letters)
        (self.home.folder / "mended.jsonl").write_text(text)
        return True


def text(path: Path) -> Any:
    """Read an output by other programs' means than the daemon's own reader."""
    if path.is_dir():
        return [row for part in sorted(path.glob("[!.]*")) for row in pq.read_table(part).to_pylist()]
    if path.suffix == ".gz":
        return gzip.decompress(path.read_bytes())
    if path.suffix == ".zst":
        with path.open("rb") as file:
            return zstandard.ZstdDecompressor().stream_reader(file, read_across_frames=True).read()
    return path.read_bytes()


def kept(header: dict[str, Any]) -> dict[str, Any]:
    """Return what a checkpoint says of the models, without the lengths of pickles: objects may share more."""
    models = header["models"]
    return {
        **models,
        "learners": {name: {**entry, "bytes": entry["bytes"] > 0} for name, entry in models["learners"].items()},
    }


def outcome(run: Run) -> dict[str, Any]:
    """Return everything that a run that was killed must have in common with one that was not."""
    header = run.home.header()
    found: dict[str, Any] = {key: header.get(key) for key in ("replayed", "warm_start")}
    found["account"] = header["source"]["account"]
    positions = re.sub(r'"inode": \d+', "", json.dumps(header["source"]["positions"]))
    if run.features.source == "watched":  # those that were found together: the twin finds more at once
        positions = re.sub(r'"(files": \[[^]]*\]|first": \d+)(, )?', "", positions)
    found["positions"] = positions
    found["models"] = kept(header)
    labels = header.get("labels") or {}
    found["labels"] = {name: labels[name] for name in set(labels) - {"clock"}}
    return found | {path.name: text(path) for path in run.home.folder.glob("out/[!s]*")}
