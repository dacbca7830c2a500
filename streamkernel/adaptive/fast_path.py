"""The fast path of one record of known numbers: through arrays that are looked up once."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from streamkernel.adaptive.core import AdaptiveCore
from streamkernel.compute.arrival import FeatureMap, Scaling, arrive
from streamkernel.records.plain import PlainRecords
from streamkernel.state import Array

_LEARNT, _NOT_LEARNT = np.ones(1, np.bool_), np.zeros(1, np.bool_)


class AdaptiveFastPath:
    """A compiled pass of one record with its arguments; it holds until one of these arrays is another.

    Parameters
    ----------
    names
        The inputs in the order of their columns, all of them.
    unknown
        The target of a record that is predicted only, shape (1,).
    core
        Where it passes.
    scaling, feature_map
        As `arrive` has them.

    """

    def __init__(
        self,
        names: tuple[Any, ...],
        unknown: Array,
        core: AdaptiveCore,
        scaling: Scaling,
        feature_map: FeatureMap,
    ) -> None:
        self._records = PlainRecords(names)
        self._truth = unknown.copy()
        self._experts = experts = core.experts
        values, extras, weights = self._records.values, np.zeros((1, 0)), np.ones(1)
        X, Phi = np.empty(values.shape, feature_map.W.dtype), np.empty((1, core.columns.n_columns))
        self._learnt = values, extras, _LEARNT, scaling, feature_map, X, Phi
        self._predicted = values, extras, _NOT_LEARNT, scaling, feature_map, X, Phi
        self._learning = experts.bind(Phi, X, values, self._truth, weights)
        self._predicting = experts.bind(Phi, X, values, unknown, weights)

    def learn(self, x: Mapping[Any, Any], truth: float) -> bool:
        """Predict, then learn, a record of known numbers; False, and nothing has happened, if it is another."""
        if not self._records.read_one(x):
            return False
        self._truth[0] = truth
        arrive(*self._learnt)
        self._experts.run(*self._learning)
        return True

    def predict(self, x: Mapping[Any, Any]) -> list[float] | None:
        """The prediction of a record of known numbers; None of another."""
        if not self._records.read_one(x):
            return None
        arrive(*self._predicted)
        self._experts.run(*self._predicting)
        prediction: list[float] = self._predicting[-1][0].tolist()
        return prediction
