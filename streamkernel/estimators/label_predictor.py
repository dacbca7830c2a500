"""River's interface to classifiers with a machine that predicts probabilities."""

import abc
import math
from typing import Any

from streamkernel.estimators.base import LEAST_PROBABILITY, AdvanceResult, StreamEstimator, most_probable
from streamkernel.estimators.explanation import LabelExplainer
from streamkernel.records.batches import Records
from streamkernel.records.classes import Classes
from streamkernel.records.frames import Frame
from streamkernel.records.results import BatchResult
from streamkernel.records.two_sides import TwoSides
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

    def _advanced_probabilities(self, batch: BatchResult) -> list[dict[Any, float]]:
        """The probability of each label that was known before a record, for all records of a batch."""
        return [
            dict(zip(self._targets.labels[:known], row, strict=False))
            for known, row in zip(batch.targets.n_classes.tolist(), batch.predictions.tolist(), strict=True)
        ]

    def _outcome(self, batch: BatchResult) -> AdvanceResult:
        probabilities = self._advanced_probabilities(batch)
        predictions = [max(p, key=p.__getitem__) if p else None for p in probabilities]
        return AdvanceResult(predictions, probabilities, batch.losses)
