"""River's interface to regressors that predict a mean and a deviation."""

from typing import Any

import numpy as np

from streamkernel.estimators.base import AdvanceResult
from streamkernel.estimators.number_predictor import NumberPredictor
from streamkernel.records.batches import Records
from streamkernel.records.frames import Frame
from streamkernel.records.results import BatchResult
from streamkernel.state import Array

#: The first columns of a machine's predictions.
MEAN, DEVIATION = range(2)


class DistributionPredictor(NumberPredictor):
    """The prediction methods of a regressor with a distribution for each record."""

    def predict_many(self, X: Any, with_dist: bool = False) -> Any:
        """Predict the targets of the rows of a data frame or array, as `predict_one` would one by one.

        Parameters
        ----------
        X
            A frame or an array of shape (n, d), as for `learn_many`.
        with_dist
            Whether to return the mean and the deviation of each row's Gaussian distribution.

        Returns
        -------
        A series of n numbers in the frame's backend, with its index. For an array, an array of shape (n,). With
        distributions, a frame with the columns `mu` and `sigma`, named as in River's `Gaussian`. For an array, an array
        of shape (n, 2).

        Examples
        --------
        >>> import pandas as pd
        >>> from streamkernel import AdaptiveKernelRegressor
        >>> model = AdaptiveKernelRegressor(seed=1)
        >>> X = pd.DataFrame({"a": [i % 10 for i in range(300)]})
        >>> model.learn_many(X, 2.0 * X["a"])
        >>> model.predict_many(X.tail(1), with_dist=True).round(0)
               mu  sigma
        299  18.0    0.0

        """
        frame = Frame(X)
        with self._lock:
            predictions = self._machine.predict(frame)
        if with_dist:
            return frame.table(["mu", "sigma"], predictions[:, [MEAN, DEVIATION]])
        return frame.series(predictions[:, MEAN].copy())

    def _predicted_numbers(self, xs: Records) -> Array:
        return np.asarray(self._machine.predict(xs)[:, MEAN])

    def _outcome(self, batch: BatchResult) -> AdvanceResult:
        return AdvanceResult(batch.predictions.ravel().tolist(), None, batch.losses, batch.deviations)
