"""A learner whose model is replaced between two chunks, as in mode predict when a newer checkpoint is there."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from streamkernel.daemon.base.events import Prediction
from streamkernel.daemon.base.moments import Moments
from streamkernel.daemon.stream.learned import Learned
from streamkernel.daemon.stream.learner import Inputs, Learner, Targets

__all__ = ["ReplaceableLearner"]


class ReplaceableLearner(Learner):
    """A learner that hands everything to another one, which may be replaced.

    Whoever holds it (the processor, the stage, the metrics) goes on with the new model.

    Parameters
    ----------
    learner
        The first one.

    Examples
    --------
    >>> from river import dummy
    >>> from streamkernel.daemon.stream.river_learner import learner_for
    >>> first, second = dummy.NoChangeClassifier(), dummy.NoChangeClassifier()
    >>> second.learn_one({}, "b")
    >>> learner = ReplaceableLearner(learner_for(first, learn=False))
    >>> learner.replace(learner_for(second, learn=False))
    >>> learner.advance([{}], [None]).result.predictions
    ['b']

    """

    def __init__(self, learner: Learner) -> None:
        super().__init__(learner.model, learner.learn)
        self._learner = learner

    def replace(self, learner: Learner) -> None:
        """Predict with another learner from now on, of the same task."""
        super().__init__(learner.model, learner.learn)
        self._learner = learner

    @property
    def input_names(self) -> str:
        return self._learner.input_names

    @property
    def target_moments(self) -> Moments:
        return self._learner.target_moments

    def _advance(
        self,
        xs: Inputs,
        ys: Targets,
        stopped: Callable[[], bool],
        predict: Sequence[bool] | None,
        until_refused: bool,
        catch: bool,
    ) -> Learned:
        return self._learner._advance(xs, ys, stopped, predict, until_refused, catch)

    def loss(self, y: Any, prediction: Prediction, deviation: float) -> float:
        return self._learner.loss(y, prediction, deviation)
