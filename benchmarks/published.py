"""Published scores of other frameworks beside ours: SAMLB's means over ten seeds, on the same records in their order.

The file published_samlb.csv of the data folder has a line a stream and framework: `dataset` (the name of the stream's
file), `framework`, `n` (records), `value` (prequential accuracy or mean absolute error), `seeds` and `metric`.
"""

import csv
from collections.abc import Mapping, Sequence
from pathlib import Path

from benchmarks import peers
from benchmarks.board import NEAR, Board, number, verdict
from benchmarks.report import table
from benchmarks.streams import Stream

FILE = "published_samlb.csv"

Published = Mapping[str, Mapping[str, float]]  # stream, framework


def published(folder: Path, streams: Sequence[Stream]) -> Published:
    """Scores by stream and framework of the streams that are those published, to their end; none without the file."""
    path = folder / FILE
    if not path.exists():
        return {}
    known = {stream.path.name.split(".")[0]: stream for stream in streams if stream.path is not None}
    scores: dict[str, dict[str, float]] = {}
    with path.open(newline="") as lines:
        for row in csv.DictReader(lines):
            stream = known.get(row["dataset"])
            if stream is None:
                continue
            metric = "accuracy" if stream.n_classes else "mae"
            if int(row["n"]) != stream.n_records or row["metric"] != metric:
                raise ValueError(f"{path}: {row['dataset']} is not the stream {stream.name}")
            scores.setdefault(stream.name, {})[row["framework"]] = float(row["value"])
    return scores


def best_published(scores: Mapping[str, float], classes: bool) -> tuple[str, float]:
    """The framework with the best score, and the score."""
    return (max if classes else min)(scores.items(), key=lambda item: item[1])


def published_table(cells: Board, streams: Sequence[Stream], scores: Published, classes: bool) -> str:
    """A row a stream: ours, the best published score and the others, and how ours stand against the best."""
    ours = [model.name for model in peers.models() if model.ours]
    rows = [s for s in streams if s.name in scores and s.name in cells and (s.n_classes > 0) is classes]
    ours = [name for name in ours if any(name in cells[s.name] for s in rows)]
    if not ours:
        return ""
    frameworks = sorted({framework for s in rows for framework in scores[s.name]})
    measure = "accuracy" if classes else "mae"
    lines = []
    for stream in rows:
        row, known = cells[stream.name], scores[stream.name]
        framework, value = best_published(known, classes)
        loss = 1 - value if classes else value
        texts = [f"{row[n].score()}, {verdict(row[n], loss, NEAR)}" if n in row else "" for n in ours]
        others = [number(known[name], measure) if name in known else "" for name in frameworks]
        lines.append([stream.name, *texts, f"{framework} {number(value, measure)}", *others])
    header = ["accuracy %" if classes else "MAE", *ours, "best published", *frameworks]
    return table(header, lines)
