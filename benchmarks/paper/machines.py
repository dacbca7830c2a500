"""The growing machines of streamkernel as learners of a comparison."""

from typing import Any

import numpy as np

from benchmarks.paper.baselines.learner import Array
from streamkernel import KernelClassifier, KernelRegressor


class GrowingMachine:
    """An estimator of streamkernel behind the interface of the comparison.

    Parameters
    ----------
    model
        A classifier or regressor; its `batch_size` is that of the mini-batches it is given.

    """

    def __init__(self, model: KernelClassifier | KernelRegressor) -> None:
        self.model = model
        self._K = 1

    @property
    def nbytes(self) -> int:
        """Bytes of the coefficients, of a cosine and a sine each; the frequencies are drawn again."""
        return 4 * 2 * self.model.n_features * self._K

    def learn(self, X: Array, T: Array, rows: Array) -> None:  # noqa: ARG002 - it keeps nothing of a row
        self._K = T.shape[1]
        self.model.learn_many(X, labels(T) if isinstance(self.model, KernelClassifier) else T[:, 0])

    def scores(self, X: Array) -> Array:
        """Numbers, or logarithms of probabilities; of two classes the first's over the second's."""
        if isinstance(self.model, KernelRegressor):
            return np.asarray(self.model.predict_many(X))[:, None]
        known = np.asarray(self.model.predict_proba_many(X), np.float64)
        p = np.full((len(X), max(self._K, 2)), 1e-15)
        for column, label in enumerate(self.model.classes):
            p[:, int(label)] = np.maximum(known[:, column], 1e-15)
        u = np.log(p)
        return np.asarray(u[:, 1:] - u[:, :1] if self._K == 1 else u)


def labels(T: Array) -> list[Any]:
    """The classes that signs stand for: of one column False and True, of several the column's number."""
    found: list[Any] = (T[:, 0] > 0).tolist() if T.shape[1] == 1 else T.argmax(axis=1).tolist()
    return found
