"""Rank against time: how accurate each learner is, and what a record costs it.

`python -m benchmarks.rank_time` draws, from the runs in benchmarks/results/accuracy.jsonl, the mean rank of each
learner that ran on all of the sixteen streams against its median time per record.
"""

import statistics
from pathlib import Path

from benchmarks import peers, streams
from benchmarks.accuracy import kept
from benchmarks.board import board
from benchmarks.command import RESULTS, asked
from benchmarks.plots import panels
from benchmarks.ranks import Ranking, ranking

OURS = {"AdaptiveKernel": "AdaptiveKernel*", "Kernel": "Kernel*"}


def measured(path: Path) -> tuple[Ranking, dict[str, float]]:
    """Return the mean ranks, and the median microseconds per record by learner."""
    rows = board([one for one in streams.built_in() if one.group == streams.SIXTEEN], kept(path), None).values()
    known = [model.name for model in peers.models() if not model.lags and "(" not in model.name]
    names = [name for name in known if all(name in row for row in rows)]
    ranks = ranking("", names, [[row[name].loss for name in names] for row in rows])
    return ranks, {name: statistics.median(1e6 / row[name].records_per_second for row in rows) for name in names}


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
    plot(*measured(RESULTS / "accuracy.jsonl"), asked(__doc__).out / "rank_time.png")


if __name__ == "__main__":
    main()
