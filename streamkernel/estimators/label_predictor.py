"""What classifiers have in common whose machine predicts probabilities: River's interface to these."""

import abc
import math
from typing import Any

from streamkernel.estimators.base import LEAST_PROBABILITY, AdvanceResult, StreamEstimator, most_probable
from streamkernel.estimators.explanation import LabelExplainer
from streamkernel.records.batches import Records
from streamkernel.records.classes import Classes
from streamkernel.records.frames import Frame
from streamkernel.records.results import BatchResult
from streamkernel.state import Array


class LabelPredictor(StreamEstimator, LabelExplainer):
    """The predictions of a classifier of labels that join as they come, made of its probabilities."""

    _targets: Classes

    @property
    def _multiclass(self) -> bool:
        return True

    @property
    def classes(self) -> list[Any]:
        """The labels seen so far."""
        return list(self._targets.labels)

    @property
    def n_ignored_labels(self) -> int:
        """Records predicted only because their label came past `max_classes`."""
        return self._targets.n_limited

    def predict_proba_one(self, x: dict[Any, Any], **_: Any) -> dict[Any, float]:
        """The probability of each label seen so far, for one record; empty before the first."""
        return dict(zip(self._targets.labels, self._probabilities_of(x), strict=True))

    def predict_one(self, x: dict[Any, Any], **_: Any) -> Any:
        """The most probable label of one record; None before the first."""
        probabilities = self._probabilities_of(x)
        return self._targets.labels[probabilities.index(max(probabilities))] if probabilities else None

    def predict_proba_many(self, X: Any) -> Any:
        """The probability of each label seen so far for the rows of a data frame or array.

        Parameters
        ----------
        X
            A frame or an array of shape (n, d), as for `learn_many`.

        Returns
        -------
        A frame of shape (n, K) in the same backend and index, a column each label in the order of their arrival; for an
        array, one of that shape.

        """
        frame = Frame(X)
        return frame.table(*self._predicted_probabilities(frame))

    def predict_many(self, X: Any) -> Any:
        """The most probable label of each row of a data frame or array; None before the first.

        Parameters
        ----------
        X
            A frame or an array of shape (n, d), as for `learn_many`.

        Returns
        -------
        A series of n labels in the frame's backend, with its index; for an array, one of shape (n,).

        """
        frame = Frame(X)
        return frame.series(most_probable(*self._predicted_probabilities(frame)))

    def loss_of(self, y: Any, prediction: dict[Any, float]) -> float:
        """Compute the model's own loss of a prediction made before its label was known.

        Its name is that of the growing estimators, whose `loss` is a constructor argument.

        Parameters
        ----------
        y
            The label that came.
        prediction
            What `predict_proba_one` gave.

        Returns
        -------
        The loss; NaN where the label has no probability, for it was not known yet.

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
    def _probabilities_of(self, x: dict[Any, Any]) -> list[float]:
        """The probabilities of the labels seen so far, for one record; none before the first."""

    @abc.abstractmethod
    def _predicted_probabilities(self, xs: Records) -> tuple[list[Any], Array]:
        """The labels known so far, K of them, and the probabilities of n records, shape (n, K)."""

    def _outcome(self, batch: BatchResult) -> AdvanceResult:
        labels = self._targets.labels
        probabilities = [
            dict(zip(labels[:known], row, strict=False))
            for known, row in zip(batch.targets.n_classes.tolist(), batch.predictions.tolist(), strict=True)
        ]
        predictions = [max(p, key=p.__getitem__) if p else None for p in probabilities]
        return AdvanceResult(predictions, probabilities, batch.losses)
