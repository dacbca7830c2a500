"""A metric in the making: its slopes, its bandwidth and its heads, some rows of the memory at each labeled record.

Until it is done the metric and the heads in force stay. Its heads let the remembered records pass, and then those that
came meanwhile, several for each that comes, until none is left.
"""

import math
from typing import Any

import numpy as np

from streamkernel.adaptive.features import AdaptiveFeatures
from streamkernel.adaptive.heads import LeastSquaresHeads
from streamkernel.adaptive.target_experts import LabelExperts, NumberExperts
from streamkernel.compute.features import FeatureMap, squared_slopes
from streamkernel.compute.gaussians import random_signs
from streamkernel.fields import Rules, all_from_zero, all_positive, array, checked, number, state_mismatch, whole
from streamkernel.kernels.drawing import median_bandwidth, slope_frequencies
from streamkernel.state import Array, State

#: No input is forgotten altogether: the least importance, in means.
LEAST_IMPORTANCE = 1e-3
#: Outputs whose slopes are taken; where there are more, random sums of them.
WATCHED = 32
#: What is no finite number counts as this much, which makes all inputs alike.
HUGE = float(np.finfo(np.float64).max)
#: Records whose median distance sets the bandwidth.
NEAREST = 200


def energy(Phi: Array, coefficients: Array, feature_map: FeatureMap) -> Array:
    """Squared slopes of scores along each input, summed over records.

    - Phi: AdaptiveFeatures of records, shape (n, D).
    - coefficients: A head's, shape (K, D).
    - feature_map: How the columns were made, with frequencies of slopes.

    Returns float64 of shape (d,), finite.
    """
    K = len(coefficients)
    if K > WATCHED:
        # The mean square of random sums of outputs is the sum of their squares.
        coefficients = np.einsum("sk,kd->sd", random_signs(np.uint64(K), WATCHED, K), coefficients)
    squares = np.empty(len(feature_map.W))
    squared_slopes(
        Phi,
        coefficients,
        feature_map.W.astype(np.float64),
        feature_map.scales.astype(np.float64),
        feature_map.root,
        feature_map.n_linear,
        squares,
    )
    return np.asarray(np.nan_to_num(squares, nan=HUGE, posinf=HUGE))


def importance(energies: Array) -> Array:
    """Squared slopes along each input, (d,), in units of their mean; at least `LEAST_IMPORTANCE`."""
    with np.errstate(over="ignore"):
        mean = energies.mean() if len(energies) else 0.0
    if not 0 < mean < math.inf or energies.max() == HUGE:
        return np.ones(len(energies))
    return np.asarray(np.maximum(energies / mean, LEAST_IMPORTANCE))


def scales_of(important: Array) -> Array:
    """What each input is multiplied by: the root of its importance in units of their mean."""
    return np.asarray(np.sqrt(important / important.mean())) if len(important) else important


_PREFIX = "relearning_"
#: Multiplications at a labeled record, roughly.
WORK = 10_000_000
#: Rows at a labeled record: more than one come in, so that there is an end.
LEAST, MOST = 4, 256

_RULES: Rules = {
    "energy": all_from_zero,
    "scales": all_positive,
    "bandwidth": all_positive,
    **LeastSquaresHeads.rules,
}


class Relearning:
    """What is learned of a metric so far.

    - columns, experts: Those in force. Heads and scores are theirs; so are the rows, which their memory has.
    - n_rows: The last rows, from which the metric is learned, at least 1.
    - columns: The features under the new metric; None until the bandwidth is known.
    - heads: The heads that let the rows pass and what these know of targets, by attribute of the experts; none at
      first.
    """

    def __init__(self, columns: AdaptiveFeatures, experts: LabelExperts | NumberExperts, n_rows: int) -> None:
        self._in_force = columns
        self._experts = experts
        self._seen = self._n_seen
        self._ahead = n_rows  # from the row that is next to the newest
        self._to_look = n_rows  # rows whose slopes are to be taken
        self._looked = 0
        self._energy = np.zeros(columns.n_inputs)
        self.columns: AdaptiveFeatures | None = None
        self.heads: dict[str, Any] = {}

    def step(self, keys: Array) -> bool:
        """Do one record's share of the work, by the keys of the d inputs; whether the metric takes effect with this."""
        self._count_arrivals()
        if self._to_look:
            self._look(keys)
        elif self.columns is None:
            self._weigh()
        elif not self.heads:
            self.heads = self._experts.fresh_heads()
        else:
            self._let_pass(self.columns, keys)
            if not self._ahead:
                self._take_effect(self.columns)
                return True
        return False

    def add_input(self) -> None:
        """One more input has a place: it was absent, 0, before."""
        self._energy = np.append(self._energy, 0.0)
        if self.columns and self.columns.add_input() and self.heads:
            self.heads["heads"].add_column()

    def add_output(self) -> None:
        """One more class."""
        if self.heads:
            self.heads["heads"].add_output()

    def find_rows(self) -> None:
        """The memory was laid out again: no record came since the last was counted."""
        self._seen = self._n_seen

    @property
    def _n_seen(self) -> int:
        return int(self._experts.memory.arrays.seen[0])

    def _count_arrivals(self) -> None:
        seen = self._n_seen
        self._ahead = min(self._ahead + seen - self._seen, len(self._experts.memory))
        self._seen = seen

    def _rows(self, n: int) -> tuple[Array, Array, Array]:
        """The next rows, at most n, with their targets and weights."""
        n = min(n, self._ahead)
        rows = self._experts.memory.rows_from(self._ahead, n)
        self._ahead -= n
        return rows

    def _look(self, keys: Array) -> None:
        """Take the slopes of some rows by the slowest head in force."""
        coefficients, columns = self._experts.slowest_head, self._in_force
        of_a_row = 6 * min(len(coefficients), WATCHED) * columns.n_inputs * columns.n_features
        X, _, _ = self._rows(min(_rows_at_once(of_a_row), self._to_look))
        feature_map = columns.feature_map(keys)
        slopes = feature_map._replace(W=slope_frequencies(columns.kernel, feature_map.W))
        with np.errstate(over="ignore"):
            self._energy = np.minimum(self._energy + energy(columns.of(X, keys), coefficients, slopes), HUGE)
        self._to_look -= len(X)
        self._looked += len(X)

    def _weigh(self) -> None:
        """Weigh the inputs, and find the bandwidth of the last rows so scaled."""
        columns, memory = self._in_force, self._experts.memory
        self._ahead = min(self._ahead + self._looked, len(memory))
        scales = scales_of(importance(self._energy))
        n = min(self._ahead, NEAREST)
        X, _, _ = memory.rows_from(n, n)
        bandwidth = columns.kernel.bandwidth or median_bandwidth(columns.kernel, X * scales)
        self.columns = columns.under(scales, bandwidth)

    def _let_pass(self, columns: AdaptiveFeatures, keys: Array) -> None:
        """Let the new heads learn some rows."""
        H, K, D = self.heads["heads"].W.shape
        X, y, w = self._rows(_rows_at_once(H * D * (3 * D // 2 + K)))
        Phi = columns.of(X, keys)
        in_force = self._experts.exchange_heads(self.heads)
        self._experts.replay(Phi, y, w)
        self.heads = self._experts.exchange_heads(in_force)

    def _take_effect(self, columns: AdaptiveFeatures) -> None:
        """Metric and heads are in force from now on; linear experts, trees and mixture stay."""
        before = max(self._in_force.d0, 1)
        self._in_force.follow(columns)
        self._experts.exchange_heads(self.heads)
        self._experts.memory.set_metric(columns.scales)
        if columns.d0 > before:
            self._experts.rescale_inputs(math.sqrt(before / columns.d0))

    @property
    def nbytes(self) -> int:
        """Bytes of the heads."""
        return sum(int(part.nbytes) for part in self.heads.values())

    def state(self) -> State:
        """The fields of the state, which a model has only while a metric is in the making."""
        self._count_arrivals()
        fields: State = {
            "rows": np.array([self._ahead, self._to_look, self._looked]),
            "energy": self._energy.copy(),
        }
        if self.columns:
            fields |= {"scales": self.columns.scales.copy(), "bandwidth": self.columns.bandwidth, "d0": self.columns.d0}
        for name, part in self.heads.items():
            fields |= part.state() if name == "heads" else {name: part.copy()}
        return {f"{_PREFIX}{name}": value for name, value in checked(fields, _RULES).items()}

    @staticmethod
    def is_in(state: State) -> bool:
        """Whether a state has a metric in the making."""
        return f"{_PREFIX}rows" in state

    @classmethod
    def of(cls, state: State, columns: AdaptiveFeatures, experts: LabelExperts | NumberExperts) -> "Relearning":
        """The metric in the making of a state whose columns and experts these are; ValueError where it does not fit."""
        own = {name.removeprefix(_PREFIX): value for name, value in state.items() if name.startswith(_PREFIX)}
        checked(own, {**experts.rules, **_RULES})
        relearning = cls(columns, experts, 0)
        d = columns.n_inputs
        ahead, to_look, looked = (int(n) for n in array(own, "rows", np.int64, 3))
        if not (0 <= to_look <= ahead <= len(experts.memory) and looked >= 0):
            raise state_mismatch("relearning_rows")
        relearning._ahead, relearning._to_look, relearning._looked = ahead, to_look, looked
        relearning._energy = array(own, "energy", np.float64, d)
        if "scales" in own:
            relearning.columns = columns.under(array(own, "scales", np.float64, d), number(own, "bandwidth"))
            relearning.columns.d0 = whole(own, "d0", d)
            if not relearning.columns.bandwidth:
                raise state_mismatch("relearning_bandwidth")
        if "heads_P" in own and relearning.columns:
            relearning.heads = experts.fresh_heads()
            for name, part in relearning.heads.items():
                if name == "heads":
                    _, K, D = part.W.shape
                    part.load_state(own, D, K)
                else:
                    part[:] = array(own, name, np.float64, *part.shape)
        return relearning


def _rows_at_once(multiplications: int) -> int:
    """Return the rows for one labeled record; each row costs `multiplications`."""
    return min(max(WORK // max(multiplications, 1), LEAST), MOST)
