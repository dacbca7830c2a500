"""Rank against time: how accurate each learner is, and what a record costs it.

`python -m benchmarks.rank_time` draws, from the scores in benchmarks/results/accuracy.md, the mean rank of each learner
that ran on all of the sixteen streams against its median time per record.
"""

from __future__ import annotations

import math
import re
import statistics
from pathlib import Path

from benchmarks.command import RESULTS, asked
from benchmarks.plots import panels
from benchmarks.ranks import Ranking, ranking

OURS = {"AdaptiveKernel": "AdaptiveKernel*", "Kernel": "Kernel*"}


def scores(page: str) -> dict[str, dict[str, tuple[float, float]]]:
    """Return by learner and stream the loss (infinite where it diverged) and the records per second."""
    sixteen = re.findall(
        r"^\| (\w+) \([\d,]+\) ", page.split("## The sixteen streams")[1].split("\n## ")[0], re.MULTILINE
    )
    found: dict[str, dict[str, tuple[float, float]]] = {}
    sign = -1.0
    for line in page.split("## Every score")[1].splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if cells[0] == "stream":
            sign = -1.0 if cells[2].startswith("accuracy") else 1.0
        if cells[0] in sixteen:
            number = re.match(r"[\d.,]+", cells[2])
            loss = sign * float(number[0].replace(",", "")) if number else math.inf
            found.setdefault(cells[1], {})[cells[0]] = loss, float(cells[-2].replace(",", ""))
    return {name: by_stream for name, by_stream in found.items() if by_stream.keys() == set(sixteen)}


def measured(page: str) -> tuple[Ranking, dict[str, float]]:
    """Return the mean ranks, and the median microseconds per record by learner."""
    found = {name: by_stream for name, by_stream in scores(page).items() if "(" not in name and name != "no change"}
    streams = sorted(next(iter(found.values())))
    ranks = ranking("", list(found), [[found[name][stream][0] for name in found] for stream in streams])
    return ranks, {name: statistics.median(1e6 / speed for _, speed in found[name].values()) for name in found}


def plot(ranks: Ranking, times: dict[str, float], path: Path) -> None:
    """Draw each learner as a dot: best at the top left."""
    with panels(path, 1, 1, (7, 4)) as (_, axes):
        axis = axes[0][0]
        for name, rank in zip(ranks.models, ranks.ranks, strict=True):
            ours = name in OURS
            axis.scatter(times[name], rank, s=60 if ours else 30, color="tab:orange" if ours else "tab:gray")
            crowded = any(
                1 < times[other] / times[name] < 2.5 and abs(at - rank) < 0.4
                for other, at in zip(ranks.models, ranks.ranks, strict=True)
            )
            offset, side = ((-6, -3), "right") if crowded else ((6, -3), "left")
            label = OURS.get(name, name)
            axis.annotate(label, (times[name], rank), offset, textcoords="offset points", ha=side, fontsize=9)
        axis.set_xscale("log")
        axis.set_xlim(right=1.9 * max(times.values()))
        axis.invert_yaxis()
        axis.set_xlabel("time to predict and learn one record, microseconds (median)")
        axis.set_ylabel(f"mean rank on {ranks.n_streams} streams (1 is best)")


def main() -> None:
    plot(*measured((RESULTS / "accuracy.md").read_text()), asked(__doc__).out / "rank_time.png")


if __name__ == "__main__":
    main()
