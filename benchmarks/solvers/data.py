"""The problems of the window benchmark: the DSPDC paper's factorized data, and four data sets, two classes each."""

from pathlib import Path

import numpy as np

from benchmarks.solvers.task import Array, Task

#: (n, p, q, d) and (l1, l2) of figure 1 of the DSPDC paper; m = 1.
SIZES = ((5_000, 100, 50, 20), (10_000, 100, 50, 50), (10_000, 500, 50, 50))
PENALTIES = ((1e-3, 1e-2), (1e-6, 1e-5))
#: lambda of the S3GD paper, whose regularizer is lambda |w|^2 without the half: l2 is twice that.
TIKHONOV = 1e-3
#: Classes are weighted equally where one has a smaller share.
UNBALANCED = 0.2


def factorized(size: tuple[int, int, int, int], penalty: tuple[float, float], loss: str, seed: int = 0) -> Task:
    """Section 6.1 of the DSPDC paper: A = (X G^T) G, X Gaussian, G random; labels of a sparse logistic model of X."""
    n, p, q, d = size
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, p))
    scores = X[:, :50].sum(axis=1)
    y = np.where(rng.random(n) < 0.5 * (1 + np.tanh(0.5 * scores)), 1.0, -1.0)
    G = rng.normal(size=(d, p)) / np.sqrt(d)
    U = X @ G.T
    l1, l2 = penalty
    name = f"n {n:,}, p {p}, q {q}, d {d}, l1 {l1:g}, l2 {l2:g}"
    return Task(name, U @ G, y, loss, l2, l1, factors=(U, G))


def adult_rows(folder: Path) -> tuple[Array, Array]:
    """All rows of a9a as they are, and their labels."""
    from sklearn.datasets import load_svmlight_file

    A, y = load_svmlight_file(str(folder / "a9a"), n_features=123)
    return A.toarray(), np.asarray(y, np.float64)


def two_classes(folder: Path) -> list[Task]:
    """The most frequent class against the rest, logistic, of a9a, electricity, shuttle and MNIST, as far as there.

    A column of ones is added, and all rows are multiplied by one number that makes the mean of their squared norms 1.
    Columns of electricity and shuttle are standardized before. A fifth of the rows is to test, of MNIST its own.
    """
    tasks: list[Task] = []
    if (folder / "a9a").exists():
        tasks.append(_split("a9a", *adult_rows(folder)))
    for name, file in (("electricity", "electricity_samlb.npz"), ("shuttle", "shuttle.npz")):
        if (folder / file).exists():
            data = np.load(folder / file, allow_pickle=True)
            X = data["X"].astype(np.float64)
            deviation = X.std(axis=0)
            tasks.append(_split(name, (X - X.mean(axis=0)) / np.where(deviation > 0, deviation, 1.0), data["y"]))
    if (folder / "mnist.npz").exists():
        data = np.load(folder / "mnist.npz", allow_pickle=True)
        X, X_test = (data[part].reshape(len(data[part]), -1) / 255.0 for part in ("X_train", "X_test"))
        tasks.append(_task("MNIST", (X, data["y_train"]), (X_test, data["y_test"])))
    return tasks


def _split(name: str, X: Array, y: Array) -> Task:
    order = np.random.default_rng(0).permutation(len(X))
    train, test = np.split(order, [4 * len(X) // 5])
    return _task(name, (X[train], y[train]), (X[test], y[test]))


def _task(name: str, train: tuple[Array, Array], test: tuple[Array, Array]) -> Task:
    labels, counts = np.unique(train[1], return_counts=True)
    most = labels[counts.argmax()]
    (A, y), (B, z) = (
        (np.hstack([X, np.ones((len(X), 1))]), np.where(labels_ == most, 1.0, -1.0)) for X, labels_ in (train, test)
    )
    scale = np.sqrt(np.square(A).sum(axis=1).mean())
    share = float(np.mean(y > 0))
    weights = np.ones(0)
    if min(share, 1 - share) < UNBALANCED:
        weights = np.where(y > 0, 0.5 / share, 0.5 / (1 - share))
    return Task(name, A / scale, y, "log", 2 * TIKHONOV, weights=weights, test=(B / scale, z))
