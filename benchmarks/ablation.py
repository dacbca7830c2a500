"""What each part of the adaptive estimators brings, and where it costs: progressive validation without it.

    python -m benchmarks.ablation [--data DIR] [--quick] [--streams A,B] [--records N] [--out DIR]

Each line is a stream with defaults, and then by how much the score changes where one part is left out or, for what is
off by default, put in. Two of the sixteen streams are of each task; the others are files.
"""

import argparse
from pathlib import Path
from statistics import fmean
from typing import Any

from benchmarks import streams
from benchmarks.board import number
from benchmarks.report import machine, table, write
from benchmarks.streams import N_LAGS, Stream
from streamkernel import AdaptiveKernelClassifier, AdaptiveKernelRegressor

STREAMS = (
    *("RandomRBFDrift", "Agrawal", "Elec2", "shuttle7", "moving_squares", "synth_RandomRBFDrift", "synth_agrawal"),
    *("FriedmanDrift", "Mv", "House8L", "bike12", "MetroTraffic", "elevators", "california_housing", "cps88wages"),
    "kings_county",
)
QUICK = ("Agrawal", "Mv")
QUICK_RECORDS = 600
SEED = 1
LAGS = "with lags"

#: The arguments that leave a part out.
WITHOUT: dict[str, dict[str, Any]] = {
    "no memory": {"memory": 0},
    "no trees": {"n_trees": 0},
    "no metric": {"metric_schedule": None},
    "one head, drift 0.001": {"drift_rates": (1e-3,)},
}


def score(stream: Stream, n_records: int | None, **arguments: Any) -> float:
    """The accuracy, or the mean absolute error; every record is predicted, then learnt."""
    kind = AdaptiveKernelClassifier if stream.n_classes else AdaptiveKernelRegressor
    xs, ys = map(list, zip(*stream.records(n_records), strict=True))
    predictions = kind(seed=SEED, **arguments).advance(xs, ys).predictions
    pairs = zip(ys, predictions, strict=True)
    return fmean(float(y == said) if stream.n_classes else abs(y - said) for y, said in pairs)


def row(stream: Stream, n_records: int | None) -> list[str]:
    """Defaults, and the change by each part: in points of accuracy, or in per cent of the error."""
    measure = "accuracy" if stream.n_classes else "mae"
    default = score(stream, n_records)
    changed = {**WITHOUT, LAGS: {"lags": 1 if stream.n_classes else N_LAGS}}
    texts = []
    for arguments in changed.values():
        other = score(stream, n_records, **arguments)
        texts.append(f"{100 * (other - default):+.2f}" if stream.n_classes else f"{100 * (other / default - 1):+.1f}%")
    n = min(stream.n_records, n_records or stream.n_records)
    return [f"{stream.name} ({n:,})", number(default, measure), *texts]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=Path("data"), help="folder of the optional files (data)")
    parser.add_argument("--quick", action="store_true", help=f"{QUICK_RECORDS} records of two streams")
    parser.add_argument("--streams", help="names, parted by commas")
    parser.add_argument("--records", type=int, help="the first records of each stream (all)")
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results")
    options = parser.parse_args()
    known = {stream.name: stream for stream in [*streams.built_in(), *streams.from_files(options.data)]}
    names = options.streams.split(",") if options.streams else QUICK if options.quick else STREAMS
    if missing := [name for name in names if not known[name].there]:
        print(f"skipped, no such file in --data: {', '.join(missing)}")
    n_records = QUICK_RECORDS if options.quick else options.records
    lines: dict[bool, list[list[str]]] = {True: [], False: []}
    for name in names:
        if known[name].there:
            lines[known[name].n_classes > 0].append(line := row(known[name], n_records))
            print(*line, sep=" | ", flush=True)
    found = [
        table([f"{measure} (records)", "defaults", *WITHOUT, LAGS], lines[classes])
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
