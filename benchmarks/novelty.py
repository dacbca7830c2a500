"""Novelty detection beside scikit-learn's exact machine and River's detectors, and density ratios of Gaussians.

    python -m benchmarks.novelty --data DIR

writes benchmarks/results/novelty.md. DIR holds shuttle.npz and mnist.npz; a stream whose file is not there is skipped,
and the report says so.
"""

import math
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from river import anomaly, feature_extraction, preprocessing
from sklearn.metrics import roc_auc_score
from sklearn.svm import OneClassSVM

from benchmarks.command import DATA, asked
from benchmarks.report import publish, table
from streamkernel import KernelDensityRatio, KernelNoveltyDetector
from streamkernel.growth import CDSG, DSG, UDSG
from streamkernel.kernels import Gaussian

N_TRAIN, N_TEST, BURN_IN = 16_000, 6000, 6000
NUS = (0.1, 0.05)
SEEDS = (1, 2, 3)
#: After so many records each, the model is also tried as it stands.
LOOKS = (12_000, 13_000, 14_000, 15_000, N_TRAIN)
Array = np.ndarray[Any, Any]


def clusters(n: int) -> tuple[Array, Array]:
    """Four clusters in eight dimensions and, for 5% of the rows, what is anywhere."""
    rng = np.random.default_rng(1)
    centers = 3 * rng.normal(size=(4, 8))
    X = centers[rng.integers(0, 4, n)] + rng.normal(size=(n, 8)) * np.array([1, 0.5, 2, 1, 1, 0.3, 1, 1])
    strange = rng.random(n) < 0.05
    X[strange] = rng.uniform(-7, 7, (int(strange.sum()), 8))
    return X, strange


def shuttle(path: Path, n: int) -> tuple[Array, Array]:
    """Shuttle without its second largest class, as in the outlier literature; what is not of the largest is strange."""
    data = np.load(path, allow_pickle=True)
    X, y = data["X"].astype(float), data["y"].astype(int)
    largest, second = np.argsort(-np.bincount(y))[:2]
    order = np.random.default_rng(0).permutation(np.flatnonzero(y != second))[:n]
    return X[order], y[order] != largest


def digits(path: Path, n: int) -> tuple[Array, Array]:
    """MNIST's 0, 1 and 2 as 7 x 7 means of 4 x 4 pixels and, for 5% of the rows, other digits, which are strange."""
    data = np.load(path)
    images = np.concatenate([data["X_train"], data["X_test"]]).reshape(-1, 7, 4, 7, 4).mean(axis=(2, 4))
    labels = np.concatenate([data["y_train"], data["y_test"]])
    rng = np.random.default_rng(0)
    usual, others = (rng.permutation(np.flatnonzero(which)) for which in (labels <= 2, labels > 2))
    strange = rng.random(n) < 0.05
    order = np.empty(n, np.int64)
    order[strange], order[~strange] = others[: strange.sum()], usual[: (~strange).sum()]
    return images.reshape(-1, 49)[order], strange


def streams(data: Path) -> Iterator[tuple[str, Array, Array]]:
    """Named streams: rows scaled by their training part, and which of them are strange."""
    n = N_TRAIN + N_TEST
    found = [("clusters (generated)", *clusters(n))]
    found += [(name, *read(data / file, n)) for name, (file, read) in FILES.items() if (data / file).exists()]
    for name, X, strange in found:
        deviations = X[:N_TRAIN].std(axis=0)
        scaled = (X - X[:N_TRAIN].mean(axis=0)) / np.where(deviations > 0, deviations, 1.0)
        yield name, np.clip(scaled, -10, 10), strange


FILES = {"Shuttle": ("shuttle.npz", shuttle), "MNIST, 0 to 2": ("mnist.npz", digits)}


def bandwidth_of(X: Array) -> float:
    """.7 of the median distance of the first 200 rows, which the estimators take where they are given none."""
    first = X[:200]
    distances = np.sqrt(((first[:, None] - first[None]) ** 2).sum(axis=2))
    return 0.7 * float(np.median(distances[np.triu_indices(200, 1)]))


def ours(nu: float, bandwidth: float, growth: Any, X: Array, truth: Array, best: float) -> list[str]:
    """The cells of a row: AUC, how far it is from the exact machine's, shares flagged, and seconds."""
    aucs, progressive, held, seconds = [], [], [], 0.0
    for seed in SEEDS:
        model = KernelNoveltyDetector(nu=nu, kernel=Gaussian(bandwidth), growth=growth, standardize=False, seed=seed)
        start, looked = time.process_time(), 0.0
        model.learn_many(X[:BURN_IN])
        flagged, n = model.n_flagged, model.n_records
        for stop in LOOKS:
            model.learn_many(X[model.n_records : stop])
            began = time.process_time()
            scores = np.asarray(model.score_many(X[N_TRAIN:]))
            held.append(float(np.mean(scores > 0)))
            looked += time.process_time() - began
        seconds += time.process_time() - start - looked
        progressive.append((model.n_flagged - flagged) / (model.n_records - n))
        aucs.append(roc_auc_score(truth, scores))
    return [
        f"{np.mean(aucs):.3f}",
        f"{min(aucs) - best:+.3f} to {max(aucs) - best:+.3f}",
        f"{min(progressive):.4f} to {max(progressive):.4f}",
        f"{min(held):.3f}",
        f"{max(held):.3f}",
        f"{seconds / len(SEEDS):.1f}",
    ]


def rivers(model: Any, X: Array) -> tuple[Array, float]:
    """Scores of the test rows by a detector of River's, and seconds."""
    records = [dict(enumerate(row)) for row in X.tolist()]
    start = time.process_time()
    for x in records[:N_TRAIN]:
        model.learn_one(x)
    seconds = time.process_time() - start
    return np.array([model.score_one(x) for x in records[N_TRAIN:]]), seconds


def detection(data: Path) -> list[list[object]]:
    """A row for each stream, share and model."""
    rows: list[list[object]] = []
    for name, X, strange in streams(data):
        truth, s = strange[N_TRAIN:], bandwidth_of(X)
        for nu in NUS:
            start = time.process_time()
            exact = OneClassSVM(nu=nu, gamma=1 / (2 * s * s)).fit(X[:N_TRAIN:2])
            took = time.process_time() - start
            scores = -exact.decision_function(X[N_TRAIN:])
            best = roc_auc_score(truth, scores)
            flagged = f"{np.mean(scores > 0):.3f}"
            rows.append(
                [name, nu, "scikit-learn OneClassSVM, exact", f"{best:.3f}", "", "", flagged, flagged, f"{took:.1f}"]
            )
            for growth in (DSG(), UDSG(), CDSG()):
                label = f"KernelNoveltyDetector, {type(growth).__name__}"
                rows.append([name, nu, label, *ours(nu, s, growth, X, truth, best)])
        sampler = feature_extraction.RBFSampler(gamma=1 / (2 * s * s), n_components=100, seed=1)
        for label, model in (
            ("River OneClassSVM(nu=.1)", anomaly.OneClassSVM(nu=0.1)),
            ("River RBFSampler(100), OneClassSVM(nu=.1)", sampler | anomaly.OneClassSVM(nu=0.1)),
            ("River HalfSpaceTrees", preprocessing.MinMaxScaler() | anomaly.HalfSpaceTrees(seed=1)),
        ):
            scores, took = rivers(model, X)
            auc = roc_auc_score(truth, scores)
            shown = f"{auc:.3f}" if auc >= 0.5 else f"{auc:.3f}; {1 - auc:.3f} with the sign turned"
            rows.append([name, "", label, shown, "", "", "", "", f"{took:.1f}"])
    return rows


def gaussians(n: int, d: int, shift: float, scale: float, share: float, seed: int) -> tuple[Array, Array, float]:
    """Rows of p = N(shift e_1, scale^2 I) and q = N(0, I), which are of p, and the divergence of p from q."""
    rng = np.random.default_rng(seed)
    of_p, X = rng.random(n) < share, rng.normal(size=(n, d))
    X[of_p] = X[of_p] * scale + np.eye(d)[0] * shift
    return X, of_p, (d * scale**2 + shift**2 - d - 2 * d * math.log(scale)) / 2


def ratios() -> list[list[object]]:
    """A row for each pair of Gaussians and policy."""
    rows: list[list[object]] = []
    for d, shift, scale, share in ((1, 1.0, 1.0, 0.5), (2, 1.0, 1.0, 0.2), (2, 1.0, 0.7, 0.8), (2, 0.0, 1.0, 0.3)):
        settings: list[tuple[str, dict[str, Any]]] = [("preconditioned, CDSG (the defaults)", {})]
        settings += [
            (f"plain, {type(growth).__name__}", {"precondition": False, "growth": growth})
            for growth in (DSG(), UDSG(), CDSG())
        ]
        for label, given in settings:
            found, kl = [], math.nan
            for seed in (1, 2, 3):
                X, of_p, kl = gaussians(30_000, d, shift, scale, share, seed)
                model = KernelDensityRatio(p=True, q=False, window=5000, seed=seed, **given)
                model.learn_many(X, of_p)
                found.append(model.divergence)
            case = f"N({shift:g} e, {scale:g}² I) and N(0, I), d = {d}"
            worst = max(abs(one - kl) for one in found)
            rows.append([case, share, label, f"{kl:.3f}", ", ".join(f"{one:.3f}" for one in found), f"{worst:.3f}"])
    return rows


def main() -> None:
    options = asked(__doc__, data=DATA)
    absent = [(name, file) for name, (file, _) in FILES.items() if not (options.data / file).exists()]
    head = ["stream", "nu", "model", "AUC", "against exact", "flagged after burn-in", "test, least", "test, most"]
    publish(
        options,
        "novelty",
        "Novelty detection and density ratios",
        f"## Novelty detection\n\n{N_TRAIN:,} records are learned in one pass (by the exact machine, every second of "
        f"them), the {N_TEST:,} after them are the test. All get the same scaled rows, and the kernel machines the "
        f"same Gaussian kernel. Ours are run with {len(SEEDS)} seeds. *AUC*: of the test, in the mean over the seeds. "
        f"*Flagged after burn-in*: the share of records {BURN_IN:,} to {N_TRAIN:,} that were flagged before they were "
        "learned. *Test, least* and *most*: the share of the test that the model flags as it stands after "
        f"{', '.join(f'{look:,}' for look in LOOKS)} records. The AUC of River's detectors is that of their scores as "
        "they give them; those of its OneClassSVM are large where records are usual.",
        "\n".join(f"{name} was not run: no {file} in the folder." for name, file in absent),
        table([*head, "CPU seconds"], detection(options.data)),
        "## Density ratios\n\n30,000 records; the divergence looks back 5,000 of either sample, and is to be the "
        "Kullback-Leibler divergence in nats.",
        table(["p and q", "share of p", "steps", "KL", "divergence, three seeds", "farthest"], ratios()),
    )


if __name__ == "__main__":
    main()
