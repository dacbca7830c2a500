"""River's interface to classifiers whose machine predicts probabilities, and to regressors of any machine."""

import abc
import math
from typing import Any

import numpy as np

from streamkernel.estimators.base import LEAST_PROBABILITY, AdvanceResult, StreamEstimator, most_probable
from streamkernel.estimators.explanation import LabelExplainer, NumberExplainer
from streamkernel.finite import loss_of_number
from streamkernel.records.batches import Records
from streamkernel.records.classes import Classes, TwoSides
from streamkernel.records.frames import Frame
from streamkernel.records.results import BatchResult, LabelDistributions
from streamkernel.records.targets import Numbers, plain_number
from streamkernel.state import Array


class LabelPredictor(StreamEstimator, LabelExplainer):
    """The prediction methods of a classifier that learns new labels as they come."""

    _targets: Classes | TwoSides

    @property
    def _multiclass(self) -> bool:
        return True

    @property
    def classes(self) -> list[Any]:
        """The labels seen so far, or the two labels of a two-class loss."""
        return list(self._targets.labels)

    @property
    def n_ignored_labels(self) -> int:
        """The number of records that were only predicted, because of `max_classes`."""
        return self._targets.n_limited

    def predict_proba_one(self, x: dict[Any, Any], **_: Any) -> dict[Any, float]:
        """Predict the probability of each label seen so far, for one record; empty before the first."""
        with self._lock:
            return dict(zip(*self._distribution_of(x), strict=True))

    def predict_one(self, x: dict[Any, Any], **_: Any) -> Any:
        """Predict the most probable label of one record; None before the first."""
        with self._lock:
            labels, probabilities = self._distribution_of(x)
        return labels[probabilities.index(max(probabilities))] if labels else None

    def predict_proba_many(self, X: Any) -> Any:
        """Predict the probability of each label seen so far, for the rows of a data frame or array.

        Parameters
        ----------
        X
            A frame or an array of shape (n, d), as for `learn_many`.

        Returns
        -------
        A frame of shape (n, K) with the same backend and index, and a column for each label in the order of arrival.
        For an array, an array of that shape.

        """
        frame = Frame(X)
        with self._lock:
            return frame.table(*self._predicted_probabilities(frame))

    def predict_many(self, X: Any) -> Any:
        """Predict the most probable label of each row of a data frame or array; None before the first.

        Parameters
        ----------
        X
            A frame or an array of shape (n, d), as for `learn_many`.

        Returns
        -------
        A series of n labels in the frame's backend, with its index. For an array, an array of shape (n,).

        """
        frame = Frame(X)
        with self._lock:
            return frame.series(most_probable(*self._predicted_probabilities(frame)))

    def loss_of(self, y: Any, prediction: dict[Any, float]) -> float:
        """Compute the model's own loss of a prediction made before its label was known.

        The method is not called `loss`, because `loss` is an argument of the growing classifier.

        Parameters
        ----------
        y
            The label.
        prediction
            The result of `predict_proba_one`.

        Returns
        -------
        The loss. NaN if the label has no probability, because it was not known yet.

        Examples
        --------
        >>> from streamkernel import AdaptiveKernelClassifier
        >>> model = AdaptiveKernelClassifier(seed=1)
        >>> round(model.loss_of("yes", {"no": 0.25, "yes": 0.75}), 3), model.loss_of("yes", {"no": 1.0})
        (0.288, nan)

        """
        if y not in prediction:
            return math.nan
        return -math.log(min(max(prediction[y], LEAST_PROBABILITY), 1.0 - LEAST_PROBABILITY))

    @abc.abstractmethod
    def _distribution_of(self, x: dict[Any, Any]) -> tuple[list[Any], list[float]]:
        """The labels that have a probability by now, and these for one record; none before the first."""

    @abc.abstractmethod
    def _predicted_probabilities(self, xs: Records) -> tuple[list[Any], Array]:
        """The labels that have a probability by now, K of them, and these for n records, shape (n, K)."""

    def _advanced_probabilities(self, batch: BatchResult) -> LabelDistributions | list[dict[Any, float]]:
        """The probability of each label that was known before a record, for all records of a batch."""
        return LabelDistributions(self._targets.labels, batch.predictions, batch.targets.n_classes)

    def _outcome(self, batch: BatchResult) -> AdvanceResult:
        return AdvanceResult(None, self._advanced_probabilities(batch), batch.losses)


class NumberPredictor(StreamEstimator, NumberExplainer):
    """The prediction methods of a regressor, in the units of its targets."""

    _machine: Any
    _targets: Numbers

    @property
    def _own_loss(self) -> Any:
        """The loss that `loss_of` computes."""
        return self._targets.loss

    @property
    def _unit(self) -> float:
        """The deviation of the targets learned so far."""
        return self._targets.deviation

    @property
    def n_clipped_targets(self) -> int:
        """The number of targets clipped to +-1e100, because larger squares would overflow."""
        return self._targets.n_limited

    def predict_one(self, x: dict[Any, Any]) -> float:
        """Predict the target of one record; 0 before the first."""
        with self._lock:
            return float(self._targets.numbers(self._machine.predict_one(x))[0])

    def predict_many(self, X: Any) -> Any:
        """Predict the targets of the rows of a data frame or array, equal to `predict_one` except for rounding.

        Parameters
        ----------
        X
            A frame or an array of shape (n, d), as for `learn_many`.

        Returns
        -------
        A series of n numbers in the frame's backend, with its index. For an array, an array of shape (n,).

        """
        frame = Frame(X)
        with self._lock:
            return frame.series(self._predicted_numbers(frame))

    def loss_of(self, y: float, prediction: float, unit: float | None = None) -> float:
        """Compute the model's own loss of a prediction made before its target was known.

        The method is not called `loss`, because `loss` is an argument of the growing regressor.

        Parameters
        ----------
        y
            The target.
        prediction
            The result of `predict_one`.
        unit
            The unit that divides both, as in learning. None (the default) is the deviation of the targets learned so
            far.

        Raises
        ------
        ValueError
            `learn_one` would reject the target.

        Examples
        --------
        >>> from streamkernel import KernelRegressor
        >>> model = KernelRegressor(seed=1)
        >>> model.loss_of(3.0, 1.0), model.loss_of(3.0, 1.0, unit=2.0)
        (4.0, 1.0)

        """
        return loss_of_number(self._own_loss, plain_number(y), prediction, self._unit if unit is None else unit)

    def _predicted_numbers(self, xs: Records) -> Array:
        return self._targets.numbers(self._machine.predict(xs))

    def _outcome(self, batch: BatchResult) -> AdvanceResult:
        return AdvanceResult(self._targets.values(batch.targets, batch.predictions), None, batch.losses)


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
        return AdvanceResult(batch.predictions.flatten(), None, batch.losses, batch.deviations)
