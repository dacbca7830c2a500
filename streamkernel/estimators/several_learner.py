"""The common part of estimators that learn several targets at once: frames of targets, and what they count."""

from collections.abc import Sequence
from typing import Any

from streamkernel.estimators.base import AdvanceResult
from streamkernel.estimators.growing import KernelMachine
from streamkernel.records.frames import Frame
from streamkernel.records.several import SeveralTargets
from streamkernel.records.target_list import target_dicts


class SeveralLearner(KernelMachine):
    """A growing kernel machine of one expansion whose coefficients have a column for each target."""

    _targets: SeveralTargets

    def learn_many(self, X: Any, y: Any, w: Sequence[float] | None = None) -> None:
        """Learn the rows of a data frame or array, exactly as `learn_one` would one by one.

        Parameters
        ----------
        X, w
            As in `KernelClassifier.learn_many`.
        y
            The targets: a data frame with a column for each, an array of shape (n, K) whose targets are named 0 to K -
            1, or a list of n dicts. The model learns nothing of a target that is None, null or, in a pandas frame, NaN
            or NA.

        """
        with self._lock:
            self._machine.learn(Frame(X), target_dicts(y), w)

    def batch_step(self, X: Any, y: Any, w: Sequence[float] | None = None) -> AdvanceResult:  # noqa: ARG002
        """Refuse: a step on a batch takes one target.

        Raises
        ------
        ValueError
            Always.

        """
        raise ValueError(
            f"a {type(self).__name__} takes no batch steps, because they take one target: call learn_many, which "
            "learns the rows one by one"
        )
