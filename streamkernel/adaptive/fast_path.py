"""The fast path of one record of known numbers: through arrays that are looked up once."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from streamkernel.adaptive.core import AdaptiveCore
from streamkernel.adaptive.lags import LaggedCore, TargetLags, last_known
from streamkernel.compute.features import FeatureMap, Scaling, arrive
from streamkernel.compute.number_pass import PREDICTION
from streamkernel.records.rows import PlainRecords
from streamkernel.state import Array

_LEARNED = np.zeros(1, np.bool_), np.ones(1, np.bool_)


class _CorePath:
    """A compiled pass of one record through a core, with its arguments.

    - core: Where it passes.
    - scaling, feature_map: As `arrive` has them.
    - values, truth, past: Where the record is found: inputs (1, d), its target (1,), and what is known of earlier
      targets, (1, G).
    - unknown: The target of a record that is predicted only, shape (1,).
    """

    def __init__(
        self,
        core: AdaptiveCore,
        scaling: Scaling,
        feature_map: FeatureMap,
        values: Array,
        truth: Array,
        past: Array,
        unknown: Array,
    ) -> None:
        self._experts = experts = core.experts
        extras, weights = np.zeros((1, 0)), np.ones(1)
        X, Phi = np.empty(values.shape, feature_map.W.dtype), np.empty((1, core.columns.n_columns))
        self._arrivals = [(values, extras, learned, scaling, feature_map, X, Phi) for learned in _LEARNED]
        self._passes = [experts.bind(Phi, X, values, y, weights, past) for y in (unknown, truth)]

    def run(self, learns: bool) -> Array:
        """The prediction of the record, which is learned or not."""
        arrive(*self._arrivals[learns])
        arguments = self._passes[learns]
        self._experts.run(*arguments)
        prediction: Array = arguments[-1][0]
        return prediction


class AdaptiveFastPath:
    """The way of one record through the cores; it holds until one of their arrays is another.

    - names: The inputs in the order of their columns, all of them.
    - unknown: The target of a record that is predicted only, shape (1,).
    - core, scaling, feature_map: The plain core, and as `arrive` has them.
    - lags: The last known targets.
    - lagged: The core that sees them, if there is one.
    """

    def __init__(
        self,
        names: tuple[Any, ...],
        unknown: Array,
        core: AdaptiveCore,
        scaling: Scaling,
        feature_map: FeatureMap,
        lags: TargetLags,
        lagged: LaggedCore | None,
    ) -> None:
        self._records = PlainRecords(names)
        self._truth = unknown.copy()
        self._lags = lags
        self._past = np.zeros((1, core.experts.n_past), unknown.dtype)
        self._path = _CorePath(core, scaling, feature_map, self._records.values, self._truth, self._past, unknown)
        self._lagged = lagged
        if lagged:
            self._given = np.zeros((1, len(lags) + len(names)))
            self._last = np.zeros((1, 1))
            arrays = self._given, self._truth, self._last, unknown
            self._lagged_path = _CorePath(lagged.core, lagged.scaling(), lagged.feature_map(), *arrays)

    def learn(self, x: Mapping[Any, Any], truth: float) -> bool:
        """Predict, then learn, a record of known numbers; False, and nothing has happened, if it is another."""
        if not self._records.read_one(x):
            return False
        self._truth[0] = truth
        self._run(True)
        self._lags.take_one(truth)
        return True

    def predict(self, x: Mapping[Any, Any]) -> list[float] | None:
        """The prediction of a record of known numbers; None of another."""
        if not self._records.read_one(x):
            return None
        prediction: list[float] = self._run(False).tolist()
        return prediction

    def _run(self, learns: bool) -> Array:
        """The prediction of the record with the lags of now."""
        if self._lagged:
            n = len(self._lags)
            self._given[0, :n] = self._lags.last
            self._last[:] = last_known(self._given)
            self._given[0, n:] = self._lagged.bounded(self._records.values[0])
            self._past[0, 0] = self._lagged_path.run(learns)[PREDICTION]
        elif self._lags.names:
            last = self._lags.last[0]
            self._past[0, 0] = -1 if last != last else last
        return self._path.run(learns)
