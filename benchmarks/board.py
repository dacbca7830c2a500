"""The runs of the accuracy benchmark by stream and model: their scores, and how two compare."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, median, pstdev

from benchmarks import peers
from benchmarks.progressive import Result
from benchmarks.streams import Stream

# What counts as level, in accuracy and as a share of the error: beside a linear model, and beside the best.
FAR, NEAR = (0.005, 0.02), (0.003, 0.01)
DIVERGED = "diverged"


@dataclass(frozen=True)
class Cell:
    """The runs of a model on a stream, over its seeds."""

    stream: Stream
    runs: tuple[Result, ...]

    @property
    def measure(self) -> str:
        return "accuracy" if self.stream.n_classes else "mae"

    @property
    def finished(self) -> bool:
        return all(run.finished for run in self.runs)

    def mean(self, score: str) -> float:
        return fmean(run.scores.get(score, math.nan) for run in self.runs)

    @property
    def loss(self) -> float:
        """The share of errors, or the absolute error; infinite where a run did not reach the end or diverged."""
        value = 1 - self.mean("accuracy") if self.stream.n_classes else self.mean("mae")
        return value if self.finished and math.isfinite(value) else math.inf

    @property
    def records_per_second(self) -> float:
        return median(run.reached / run.seconds for run in self.runs if run.seconds > 0)

    @property
    def memory(self) -> float:
        return median(run.memory for run in self.runs)

    def score(self) -> str:
        """Mean and deviation; in brackets, with the records reached, where the end was not."""
        values = [run.scores.get(self.measure, math.nan) for run in self.runs]
        text = number(fmean(values), self.measure)
        if len(values) > 1 and text != DIVERGED:
            text += f" ± {number(pstdev(values), self.measure, fmean(values))}"
        if self.finished:
            return text
        word = "failed at" if any(run.failure for run in self.runs) else "at"
        return f"({text} {word} {min(run.reached for run in self.runs):,})"


Board = Mapping[str, Mapping[str, Cell]]  # stream, model


def number(value: float, measure: str, scale: float | None = None) -> str:
    """A percentage, or an error with four digits of its scale."""
    if not math.isfinite(value) or abs(value) >= 1e9:
        return DIVERGED
    if measure == "accuracy":
        return f"{100 * value:.2f}"
    size = abs(value if scale is None else scale)
    return f"{value:,.{max(0, min(6, 3 - math.floor(math.log10(size)))) if size else 3}f}"


def board(streams: Sequence[Stream], results: Sequence[Result], n_records: int | None) -> Board:
    """The newest run of every stream, model and seed that read so many records."""
    newest = {(r.stream, r.model, r.seed, r.n_records): r for r in results}
    cells: dict[str, dict[str, Cell]] = {}
    for stream in streams:
        size = min(stream.n_records, n_records or stream.n_records)
        for model in peers.models():
            runs = tuple(r for (s, m, _, n), r in newest.items() if (s, m, n) == (stream.name, model.name, size))
            if runs:
                cells.setdefault(stream.name, {})[model.name] = Cell(stream, runs)
    return cells


def best(row: Mapping[str, Cell], ours: bool, lags: bool = False) -> tuple[str, float] | None:
    """The peer, or the model of ours, with the lowest loss among those that know as much and reached the end."""
    names = {model.name for model in peers.models() if model.ours is ours and model.lags is lags}
    losses = {name: cell.loss for name, cell in row.items() if name in names and math.isfinite(cell.loss)}
    return min(losses.items(), key=lambda item: item[1]) if losses else None


def level(loss: float, other: float, classes: bool, margins: tuple[float, float] = FAR) -> bool:
    """Whether a loss is lower than another or within the margin of it."""
    points, share = margins
    return loss <= (other + points if classes else other * (1 + share))


def verdict(cell: Cell, rival: float, margins: tuple[float, float] = FAR) -> str:
    """How a model of ours stands against a loss of others."""
    if cell.loss < rival:
        return "best"
    return "level" if level(cell.loss, rival, cell.stream.n_classes > 0, margins) else "behind"
