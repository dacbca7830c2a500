"""What each part of the adaptive estimators brings, and where it costs: progressive validation without it.

    python -m benchmarks.ablation [--data DIR] [--quick] [--streams A,B] [--records N] [--out DIR]

Each line has a stream's score with defaults, and the change when one part is left out or, if it is off by default, put
in. Two of the sixteen streams are of each task; the others are files.
"""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any
from unittest import mock

import numpy as np

from benchmarks import streams
from benchmarks.board import number
from benchmarks.command import DATA, NAMES, asked, at_least
from benchmarks.progressive import score
from benchmarks.report import publish, table
from benchmarks.streams import N_LAGS, Stream, of_names
from streamkernel import AdaptiveKernelClassifier, AdaptiveKernelRegressor
from streamkernel.adaptive.target_experts import LabelExperts, NumberExperts

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
    """Let the models that are made in this context have no stacks."""
    with ExitStack() as stack:
        for kind in (LabelExperts, NumberExperts):
            stack.enter_context(mock.patch.object(kind, "stack_drifts", np.zeros(0)))
        yield


def row(stream: Stream, n_records: int | None) -> list[str]:
    """Return the default's score and the change by each part: points of accuracy, or per cent of the error."""
    classes = stream.n_classes > 0
    kind = AdaptiveKernelClassifier if classes else AdaptiveKernelRegressor

    def scored(**arguments: Any) -> float:
        return score(kind(seed=SEED, **arguments), stream.records(n_records), classes)

    default = scored()
    others = [scored(**arguments) for arguments in WITHOUT.values()]
    with no_stacks():
        others.append(scored())
    others.append(scored(lags=1 if classes else N_LAGS))
    texts = [f"{100 * (o - default):+.2f}" if classes else f"{100 * (o / default - 1):+.1f}%" for o in others]
    n = min(stream.n_records, n_records or stream.n_records)
    return [f"{stream.name} ({n:,})", number(default, "accuracy" if classes else "mae"), *texts]


def main() -> None:
    records = {"type": at_least(1), "help": "the first records of each stream (all)"}
    options = asked(__doc__, quick=f"{QUICK_RECORDS} records of two streams", data=DATA, streams=NAMES, records=records)
    names = options.streams or (QUICK if options.quick else STREAMS)
    n_records = QUICK_RECORDS if options.quick else options.records
    lines: dict[bool, list[list[str]]] = {True: [], False: []}
    for stream in of_names(streams.catalog(options.data).values(), names):
        lines[stream.n_classes > 0].append(line := row(stream, n_records))
        print(*line, sep=" | ", flush=True)
    publish(
        options,
        "ablation",
        "What each part brings",
        f"Progressive validation, seed {SEED}: the score with defaults, and by how much it changes where a part is "
        f"left out or, in the last column, where the model is told to keep {N_LAGS} lags, of labels 1. Points of "
        "accuracy: below 0 the part left out brings something. Per cent of the error: above 0.",
        *(
            table([f"{measure} (records)", "defaults", *PARTS], lines[classes])
            for classes, measure in ((True, "accuracy %"), (False, "MAE"))
            if lines[classes]
        ),
    )


if __name__ == "__main__":
    main()
