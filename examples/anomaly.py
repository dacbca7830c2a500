"""Anomaly detection without labels: two streams, of which one suits each of the two detectors.

python examples/anomaly.py [PICTURE.png]
"""

import random
import sys
from collections.abc import Iterator
from typing import Any

import numpy as np
from river import anomaly, datasets, preprocessing

from streamkernel import KernelNoveltyDetector

N_RECORDS, WARM_UP = 10_000, 2000
rng = random.Random(1)


# %% Two streams: servers with broken relations, and Shuttle, real data that River ships.
def server(load: float) -> dict[str, float]:
    """Return what a server shows under a load from 0 to 1."""
    return {
        "requests": 100 + 900 * load + rng.gauss(0, 30),
        "cpu": 5 + 70 * load**2 + rng.gauss(0, 3),
        "latency": 20 + 40 * load + rng.gauss(0, 4),
    }


def servers() -> Iterator[tuple[dict[str, float], bool]]:
    """Yield records. In one of fifty, a value is that of another load: usual alone, wrong next to the others."""
    for _ in range(N_RECORDS):
        x, is_anomaly = server(rng.random()), rng.random() < 0.02
        if is_anomaly:
            name = rng.choice(list(x))
            x[name] = server(rng.random())[name]
        yield x, is_anomaly


# %% Two detectors, each of which scores a record and then learns it, without its label.
def detectors() -> dict[str, Any]:
    """Return fresh detectors."""
    return {
        "KernelNoveltyDetector": KernelNoveltyDetector(nu=0.1, max_features=1024, seed=1),
        "HalfSpaceTrees": preprocessing.MinMaxScaler() | anomaly.HalfSpaceTrees(seed=1),
    }


curves: dict[str, dict[str, Any]] = {}
streams = {"servers": list(servers()), "Shuttle": list(datasets.Shuttle().take(N_RECORDS))}
for stream, records in streams.items():
    curves[stream] = {}
    labels = np.array([is_anomaly for _, is_anomaly in records[WARM_UP:]], bool)
    for name, model in detectors().items():
        scores = []
        for x, _ in records:
            scores.append(model.score_one(x))
            model.learn_one(x)
        ranked = labels[np.argsort(scores[WARM_UP:], kind="stable")[::-1]]
        found, false = np.cumsum(ranked) / ranked.sum(), np.cumsum(~ranked) / (~ranked).sum()
        curves[stream][name] = false, found
        print(f"{stream:8} {name:22} ROC AUC {np.diff(false, prepend=0) @ found:.3f}")

# %% The picture
if sys.argv[1:]:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7, 3.5), layout="constrained")
    for stream, axes in zip(curves, figure.subplots(1, 2, sharey=True), strict=True):
        for name, curve in curves[stream].items():
            axes.plot(*curve, label=name)
        axes.set(title=stream, xlabel="false alarms, share of usual records", ylabel="anomalies found, share")
        axes.label_outer()
    axes.legend()
    figure.savefig(sys.argv[1], dpi=90)
