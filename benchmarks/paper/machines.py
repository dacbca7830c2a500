"""The growing machines of streamkernel as learners of a comparison."""

from typing import Any

import numpy as np
from river.optim.losses import BinaryLoss

from benchmarks.digit_runs import SquaredError
from benchmarks.paper.baselines.learner import Array
from streamkernel import KernelClassifier, KernelRegressor


class GrowingMachine:
    """A classifier or regressor of streamkernel with the interface of the comparison; `weight` is that of records."""

    def __init__(self, model: KernelClassifier | KernelRegressor, weight: float = 1.0) -> None:
        self.model = model
        self._weight = weight
        self._K = 1

    @property
    def nbytes(self) -> int:
        """Bytes of the coefficients, of a cosine and a sine each; the frequencies are drawn again."""
        model = self.model
        K = 1 if isinstance(model, KernelRegressor) or isinstance(model.loss, BinaryLoss) else len(model.classes)
        return 4 * 2 * model.n_features * K

    def learn(self, X: Array, T: Array, rows: Array) -> None:  # noqa: ARG002 - it keeps nothing of a row
        self._K = T.shape[1]
        y = labels(T) if isinstance(self.model, KernelClassifier) else T[:, 0]
        self.model.learn_many(X, y, None if self._weight == 1 else [self._weight] * len(X))

    def scores(self, X: Array) -> Array:
        """Numbers, or logarithms of probabilities; of two classes the first's less the second's.

        The squared error has scores in place of probabilities: these are taken as they are.
        """
        if isinstance(self.model, KernelRegressor):
            return np.asarray(self.model.predict_many(X))[:, None]
        u = np.full((len(X), max(self._K, 2)), 0.0 if isinstance(self.model.loss, SquaredError) else 1e-15)
        u[:, [int(label) for label in self.model.classes]] = np.asarray(self.model.predict_proba_many(X), np.float64)
        if not isinstance(self.model.loss, SquaredError):
            u = np.log(np.maximum(u, 1e-15))
        return np.asarray(u[:, 1:] - u[:, :1] if self._K == 1 else u)


def labels(T: Array) -> list[Any]:
    """The classes that signs stand for: of one column False and True, of several the column's number."""
    found: list[Any] = (T[:, 0] > 0).tolist() if T.shape[1] == 1 else T.argmax(axis=1).tolist()
    return found
