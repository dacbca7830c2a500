"""What each part of the adaptive estimators brings, and where it costs: progressive validation without it.

    python -m benchmarks.ablation [--data DIR] [--quick] [--streams A,B] [--records N] [--out DIR]

Each line is a stream with defaults, and then by how much the score changes where one part is left out or, for what is
off by default, put in. Two of the sixteen streams are of each task; the others are files.
"""

import argparse
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from statistics import fmean
from typing import Any
from unittest import mock

import numpy as np

from benchmarks import streams
from benchmarks.asked import at_least, of_names
from benchmarks.board import number
from benchmarks.report import machine, table, write
from benchmarks.streams import N_LAGS, Stream
from streamkernel import AdaptiveKernelClassifier, AdaptiveKernelRegressor
from streamkernel.adaptive.label_experts import LabelExperts
from streamkernel.adaptive.number_experts import NumberExperts

STREAMS = (
    *("RandomRBFDrift", "Agrawal", "Elec2", "shuttle7", "moving_squares", "synth_RandomRBFDrift", "synth_agrawal"),
    *("FriedmanDrift", "Mv", "House8L", "bike12", "MetroTraffic", "elevators", "california_housing", "cps88wages"),
    "kings_county",
)
QUICK = ("Agrawal", "Mv")
QUICK_RECORDS = 600
SEED = 1
LAGS = "with lags"
STACKS = "no stacks"

#: The arguments that leave a part out.
WITHOUT: dict[str, dict[str, Any]] = {
    "no memory": {"memory": 0},
    "no trees": {"n_trees": 0},
    "no metric": {"metric_schedule": None},
    "one head, drift 0.001": {"drift_rates": (1e-3,)},
}
#: A column for each part, in the order of `row`.
PARTS = (*WITHOUT, STACKS, LAGS)


@contextmanager
def no_stacks() -> Iterator[None]:
    """While it is entered, what is begun has none."""
    with ExitStack() as stack:
        for kind in (LabelExperts, NumberExperts):
            stack.enter_context(mock.patch.object(kind, "stack_drifts", np.zeros(0)))
        yield


def score(stream: Stream, n_records: int | None, **arguments: Any) -> float:
    """The accuracy, or the mean absolute error; every record is predicted, then learned."""
    kind = AdaptiveKernelClassifier if stream.n_classes else AdaptiveKernelRegressor
    xs, ys = map(list, zip(*stream.records(n_records), strict=True))
    predictions = kind(seed=SEED, **arguments).advance(xs, ys).predictions
    pairs = zip(ys, predictions, strict=True)
    return fmean(float(y == said) if stream.n_classes else abs(y - said) for y, said in pairs)


def row(stream: Stream, n_records: int | None) -> list[str]:
    """Defaults, and the change by each part: in points of accuracy, or in per cent of the error."""
    measure = "accuracy" if stream.n_classes else "mae"
    default = score(stream, n_records)
    others = [score(stream, n_records, **arguments) for arguments in WITHOUT.values()]
    with no_stacks():
        others.append(score(stream, n_records))
    others.append(score(stream, n_records, lags=1 if stream.n_classes else N_LAGS))
    texts = [
        f"{100 * (other - default):+.2f}" if stream.n_classes else f"{100 * (other / default - 1):+.1f}%"
        for other in others
    ]
    n = min(stream.n_records, n_records or stream.n_records)
    return [f"{stream.name} ({n:,})", number(default, measure), *texts]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=Path("data"), help="folder of the optional files (data)")
    parser.add_argument("--quick", action="store_true", help=f"{QUICK_RECORDS} records of two streams")
    parser.add_argument("--streams", help="names, parted by commas")
    parser.add_argument("--records", type=at_least(1), help="the first records of each stream (all)")
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results")
    options = parser.parse_args()
    names = options.streams.split(",") if options.streams else QUICK if options.quick else STREAMS
    chosen = of_names(streams.catalog(options.data).values(), names)
    n_records = QUICK_RECORDS if options.quick else options.records
    lines: dict[bool, list[list[str]]] = {True: [], False: []}
    for stream in chosen:
        lines[stream.n_classes > 0].append(line := row(stream, n_records))
        print(*line, sep=" | ", flush=True)
    found = [
        table([f"{measure} (records)", "defaults", *PARTS], lines[classes])
        for classes, measure in ((True, "accuracy %"), (False, "MAE"))
        if lines[classes]
    ]
    tables = "\n\n".join(found)
    command = "python -m benchmarks.ablation --data DIR" + f" --records {options.records}" * bool(options.records)
    command += " --quick" * options.quick + f" --streams {options.streams}" * bool(options.streams)
    text = f"""# What each part brings

`{command}` on {machine()}.

Progressive validation, seed {SEED}: the score with defaults, and by how much it changes where a part is left out or, in
the last column, where the model is told to keep {N_LAGS} lags, of labels 1. Points of accuracy: below 0 the part left
out brings something. Per cent of the error: above 0.

{tables}
"""
    write(options.out / "ablation.md", text)


if __name__ == "__main__":
    main()
