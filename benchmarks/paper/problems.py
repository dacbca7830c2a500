"""The data sets of the experiments: inputs, targets and a test set, as the papers prepare them."""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from scipy.spatial.distance import pdist

from benchmarks.paper.baselines.learner import Array


@dataclass(frozen=True)
class Problem:
    """A training set and a test set."""

    name: str  #: in tables and plots
    X: Array  #: training inputs, float32 of shape (n, d)
    T: Array  #: targets, float64 of shape (n, K): signs, of several classes one column each; or numbers
    X_test: Array
    T_test: Array
    bandwidth: float  #: the median distance of 1,000 training rows

    @property
    def n(self) -> int:
        """Rows of the training set."""
        return len(self.X)

    def with_bandwidth(self, bandwidth: float) -> "Problem":
        """The same with another bandwidth."""
        return replace(self, bandwidth=bandwidth)

    def first(self, n_inputs: int) -> "Problem":
        """The same with the first inputs alone, and their median distance."""
        X, X_test = (np.ascontiguousarray(part[:, :n_inputs]) for part in (self.X, self.X_test))
        return replace(self, X=X, X_test=X_test, bandwidth=median_distance(X))

    def split(self, held: Array) -> "Problem":
        """The training rows alone, those held, bool of shape (n,), to test and the others to learn."""
        X, T = self.X, self.T
        return replace(self, X=X[~held], T=T[~held], X_test=X[held], T_test=T[held])


def median_distance(X: Array) -> float:
    """The median distance of 1,000 rows, drawn with a fixed seed: the median trick of both papers."""
    return float(np.median(pdist(X[np.random.default_rng(0).permutation(len(X))[:1_000]])))


def signs(y: Array, labels: list[int]) -> Array:
    """+1 in the column of the label and -1 in others; one column for two labels, +1 for the first."""
    columns = labels[:1] if len(labels) == 2 else labels
    return np.where(y[:, None] == np.array(columns), 1.0, -1.0)


def true_surface(X: Array) -> Array:
    """cos(pi |x| / 2) exp(-pi |x| / 10), the function of sections 7.1 and 7.2."""
    norm = np.linalg.norm(X, axis=1)
    return np.asarray(np.cos(0.5 * math.pi * norm) * np.exp(-0.1 * math.pi * norm))


def surface(rng: np.random.Generator, n: int) -> tuple[Array, Array]:
    """Points of [-5, 5]^2, and the function's values there with noise of deviation .1."""
    X = rng.uniform(-5, 5, size=(n, 2))
    return X, true_surface(X) + 0.1 * rng.normal(size=n)


def adult(folder: Path | None, quick: bool = False) -> Problem | None:
    """a9a: 26,000 of the 32,561 rows to learn from, the others to test; None without the file."""
    from sklearn.datasets import load_svmlight_file

    if folder is None or not (folder / "a9a").exists():
        return None
    X, y = load_svmlight_file(str(folder / "a9a"), n_features=123)
    X, T = X.toarray(), signs(y, [1, -1])
    n = min(26_000, 4 * len(X) // 5)
    return _problem("Adult (a9a)", (X[:n], T[:n]), (X[n:], T[n:]), quick)


def eights_and_sixes(folder: Path | None, quick: bool = False) -> Problem | None:
    """MNIST's 8 against 6, 100 principal components; None without the file."""
    return _mnist("MNIST 8 against 6", folder, [8, 6], 100, quick)


def mnist(folder: Path | None, quick: bool = False) -> Problem | None:
    """MNIST's ten classes, 100 principal components; None without the file."""
    return _mnist("MNIST", folder, list(range(10)), 100, quick)


def digits(folder: Path | None = None, quick: bool = False) -> Problem:  # noqa: ARG001 - it comes with scikit-learn
    """scikit-learn's 1,797 digits of 8 x 8 pixels, standardized, a quarter of them to test."""
    from sklearn.datasets import load_digits

    X, y = load_digits(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(X))
    deviation = X.std(axis=0)
    X = ((X - X.mean(axis=0)) / np.where(deviation > 0, deviation, 1))[order]
    T = signs(y[order], list(range(10)))
    return _problem("digits (scikit-learn's)", (X[:1_347], T[:1_347]), (X[1_347:], T[1_347:]), quick)


#: What makes a problem of the files in a folder; None where they are not there.
Load = Callable[[Path | None, bool], Problem | None]


def _problem(name: str, train: tuple[Array, Array], test: tuple[Array, Array], quick: bool) -> Problem:
    n, n_test = (1_200, 400) if quick else (None, None)
    (X, T), (X_test, T_test) = train, test
    X, X_test = (np.ascontiguousarray(part, np.float32) for part in (X[:n], X_test[:n_test]))
    return Problem(name, X, T[:n], X_test, T_test[:n_test], median_distance(X))


def _mnist(name: str, folder: Path | None, labels: list[int], n_components: int, quick: bool) -> Problem | None:
    """Principal components, of the training images with these labels, of pixels from 0 to 1."""
    if folder is None or not (folder / "mnist.npz").exists():
        return None
    data = np.load(folder / "mnist.npz", allow_pickle=True)
    y, y_test = data["y_train"], data["y_test"]
    kept, kept_test = np.isin(y, labels), np.isin(y_test, labels)
    X = data["X_train"][kept].reshape(kept.sum(), -1) / 255.0
    X_test = data["X_test"][kept_test].reshape(kept_test.sum(), -1) / 255.0
    mean = X.mean(axis=0)
    axes = np.linalg.eigh(np.cov(X, rowvar=False))[1][:, ::-1][:, :n_components]
    train = (X - mean) @ axes, signs(y[kept], labels)
    return _problem(name, train, ((X_test - mean) @ axes, signs(y_test[kept_test], labels)), quick)
