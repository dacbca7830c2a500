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
        X
            An eager data frame that narwhals supports (pandas, polars, pyarrow), or an array, of shape (n, d). The
            columns of an array have the names 0 to d - 1, as in `learn_one({0: ..., 1: ...}, ...)`.
        y
            The targets: a data frame with a column for each, an array of shape (n, K) whose targets are named 0 to K -
            1, or a list of n dicts. The model learns nothing of a target that is None, null or, in a pandas frame, NaN
            or NA.
        w
            The n weights. All 1 by default.

        Raises
        ------
        ValueError
            A row is unusable: an input is infinite, or an input, a target or a weight is invalid. Or the number of
            targets or weights differs from the number of rows. The call then learns nothing.
        TypeError
            X or y is not a frame, array or list.

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
