"""The experts: least squares heads that drift at different rates, two linear experts, trees, and their mixture."""

import abc
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from streamkernel.adaptive.change import Change
from streamkernel.adaptive.forest import TreeEnsembles
from streamkernel.adaptive.passing import advance_records, pass_records
from streamkernel.compute.arrival import FeatureMap, Scaling, Window
from streamkernel.compute.asinh import MAGNITUDES, AsinhStatistics, replay_asinh
from streamkernel.compute.experts import Heads, Linear, Mixture, hedge_weights, replay, standardise_targets
from streamkernel.compute.label_pass import pass_labels
from streamkernel.compute.moments import SIZE as MOMENTS
from streamkernel.compute.moments import are_moments, near
from streamkernel.compute.number_pass import TargetStatistics, pass_numbers
from streamkernel.compute.recursive import apply_deferred
from streamkernel.fields import Rules, all_finite, array, checked
from streamkernel.state import Array, State

#: lambda of the two softmax-Newton experts, and q of the two linear least squares experts.
_FORGETTING = np.array([1.0, 0.99])
_LINEAR_DRIFTS = np.array([0.0, 1e-3])


class Experts(abc.ABC):
    """Heads on all columns, linear experts on the last ones, and trees on the inputs, with K outputs.

    Parameters
    ----------
    ridge
        rho.
    drift_rates
        q of each head.
    n_trees, window
        Trees of an ensemble, 0 for none, and the records they are grown on.

    Attributes
    ----------
    heads_P, heads_W
        float64 of shape (H, D, D), lower triangles, and (H, K, D). `heads_P` is settled whenever it is looked at.
    linear_P, linear_W
        float64 of shape (E, L, L) and (E, K, L).
    forest
        The trees.
    change
        Watches the mixture's losses.
    losses
        Discounted losses: heads, linear experts, then those that trees bring; float64.

    """

    n_linear_experts = 2
    #: Scales of a target that each head learns.
    n_scales = 1
    #: Ensembles of trees, if there are any.
    n_ensembles: int
    #: lambda of the linear experts, or q of those for numbers.
    linear_rates: Array
    #: The compiled pass. Of the class: an instance that held it would be as large as the compiler.
    run: Callable[..., int]
    #: The target of a record that is predicted only.
    nothing: float
    #: The mixture's rate.
    eta: float

    def __init__(self, ridge: float, drift_rates: tuple[float, ...], n_trees: int, window: int) -> None:
        self.ridge = ridge
        self.drifts = np.array(drift_rates, np.float64)
        self.forest = TreeEnsembles(self.n_ensembles, n_trees, window)
        self.begin(0, None, 0, 0)

    def begin(self, n_columns: int, n_linear: int | None, n_outputs: int, n_inputs: int) -> None:
        """Begin with nothing learnt; None linear columns, now or later, is no linear experts."""
        H = len(self.drifts)
        E = 0 if n_linear is None else self.n_linear_experts
        L = (n_linear or 0) + 1
        self.heads_P = _fresh(H, n_columns, self.ridge)
        self.heads_W = np.zeros((H, n_outputs * self.n_scales, n_columns))
        self.linear_P = _fresh(E, L, self.ridge)
        self.linear_W = np.zeros((E, n_outputs, L))
        self.forest.begin(n_inputs, n_outputs)
        self.losses = np.zeros(self.n_scales * H + E + len(self.tree_names))
        self.change = Change()

    @property
    @abc.abstractmethod
    def tree_names(self) -> list[str]:
        """The experts that come after the linear ones."""

    @property
    def heads_P(self) -> Array:
        """The heads' matrices, all they are deferred taken: neither this nor when it happens changes a bit to come."""
        for P, deferred in zip(self._heads_P, self._deferred, strict=True):
            if deferred.any():
                apply_deferred(P, deferred, 1.0 / self.ridge)
        return self._heads_P

    @heads_P.setter
    def heads_P(self, P: Array) -> None:
        H, D, _ = P.shape
        self._heads_P = P
        self._deferred = np.zeros((H, D + 2))

    @property
    def slowest_head(self) -> Array:
        """The coefficients of the head that drifts least, (K, D): what the metric is learnt from."""
        return np.asarray(self.heads_W[int(np.argmin(self.drifts))])

    def forget_heads(self) -> None:
        """The heads begin anew; linear experts and mixture go on."""
        H, D, _ = self._heads_P.shape
        self.heads_P = _fresh(H, D, self.ridge)
        self.heads_W[:] = 0.0

    def rescale_inputs(self, factor: float) -> None:
        """The inputs' columns become `factor` <= 1 times what they were, under linear experts that go on.

        Their coefficients grow by 1 / factor, so that their scores stay. So does P where the ridge leaves it
        room: any diagonal congruence keeps it positive.
        """
        self.linear_W[:, :, 1:] /= factor
        diagonal = np.einsum("eii->ei", self.linear_P)
        # Rounding can leave a diagonal below 0 where it ought to be next to nothing.
        growth = 1 / np.sqrt(np.clip(self.ridge * diagonal, factor**2, 1.0))
        growth[:, 0] = 1.0  # the constant
        self.linear_P *= growth[:, :, None] * growth[:, None, :]

    def add_column(self) -> None:
        """One more input became a column: nothing is known of it."""
        self.heads_P, self.linear_P = (_bordered(P, self.ridge) for P in (self.heads_P, self.linear_P))
        self.heads_W, self.linear_W = (
            np.ascontiguousarray(np.pad(W, ((0, 0), (0, 0), (0, 1)))) for W in (self.heads_W, self.linear_W)
        )

    def add_output(self) -> None:
        """One more class: its scores are 0."""
        self.forest.add_output()
        self.heads_W, self.linear_W = (
            np.ascontiguousarray(np.pad(W, ((0, 0), (0, n), (0, 0))))
            for W, n in ((self.heads_W, self.n_scales), (self.linear_W, 1))
        )

    def advance(
        self,
        values: Array,
        extras: Array,
        truths: Array,
        weights: Array,
        learnt: Array,
        scaling: Scaling,
        feature_map: FeatureMap,
        window: Window,
    ) -> Array:
        """Predict, then learn, rows still to be scaled and made columns of; the predictions, (n, K) or (n, 3)."""
        out = np.empty((len(values), self._width))
        arrival = values, extras, truths, weights, learnt, scaling, feature_map, window
        advance_records(self.run, *arrival, self._arrays, self.forest.arrays, out, self.nothing)
        return out

    def learn(self, Phi: Array, values: Array, truths: Array, weights: Array) -> Array:
        """Predict, then learn, rows whose columns are known; the predictions, (n, K) or (n, 3)."""
        out = np.empty((len(values), self._width))
        pass_records(self.run, Phi, values, truths, weights, self._arrays, self.forest.arrays, out)
        return out

    def bind(self, Phi: Array, values: Array, truths: Array, weights: Array) -> tuple[Any, ...]:
        """The arguments of `run`, of which the last is filled with the predictions."""
        return Phi, values, truths, weights, *self._arrays, np.empty((len(values), self._width))

    @property
    def nbytes(self) -> int:
        """Bytes of the matrices and the trees."""
        matrices = (self._heads_P, self._deferred, self.heads_W, self.linear_P, self.linear_W)
        return sum(int(part.nbytes) for part in matrices) + self.forest.nbytes

    @property
    def weights(self) -> dict[str, float]:
        """Each expert's weight in the mixture, by name."""
        names = [f"head, drift {q:g}" for q in self.drifts] + [f"linear {e}" for e in range(len(self.linear_W))]
        names += [f"asinh head, drift {q:g}" for q in self.drifts if self.n_scales > 1] + self.tree_names
        weights = np.empty(len(names))
        hedge_weights(self.losses, self.eta, weights)
        return dict(zip(names, weights.tolist(), strict=True))

    def state(self) -> State:
        """The fields of the state."""
        own = {name: getattr(self, name).copy() for name in self._fields}
        return {**checked(own, self.rules), **self.forest.state(), **self.change.state()}

    def load_state(self, state: State, n_columns: int, n_linear: int | None, n_outputs: int, n_inputs: int) -> None:
        """Take the fields that `state` gave; ValueError where they do not fit."""
        checked(state, self.rules)
        self.begin(n_columns, n_linear, n_outputs, n_inputs)
        self.forest.load_state(state, n_inputs, n_outputs)
        self.change.load_state(state)
        for name in self._fields:
            setattr(self, name, array(state, name, np.float64, *getattr(self, name).shape))

    @property
    def rules(self) -> Rules:
        """What the numbers of the state may be."""
        return dict.fromkeys(self._fields, all_finite)

    @property
    def _arrays(self) -> tuple[Any, ...]:
        """What `run` reads and writes of the experts, in plain tuples."""
        linear = Linear(self.linear_P, self.linear_W, self.linear_rates, self.ridge)
        mixture = Mixture(self.losses, self.change.block, self.eta)
        return *map(tuple, (self._heads, linear, self.forest.arrays, mixture)), self._others

    @property
    def _heads(self) -> Heads:
        return Heads(self._heads_P, self.heads_W, self._deferred, self.drifts, self.ridge)

    @property
    @abc.abstractmethod
    def _others(self) -> Array | tuple[Array, ...]:
        """What `run` reads and writes beside heads, linear experts, trees and mixture."""

    @property
    @abc.abstractmethod
    def _width(self) -> int:
        """Numbers of a prediction."""

    @property
    def _fields(self) -> tuple[str, ...]:
        return ("heads_P", "heads_W", "linear_P", "linear_W", "losses")

    def _replay(self, Phi: Array, truths: Array, weights: Array) -> None:
        replay(Phi, truths, weights, self._heads)


def _fresh(n: int, size: int, ridge: float) -> Array:
    return np.tile(np.eye(size) / ridge, (n, 1, 1))


def _bordered(P: Array, ridge: float) -> Array:
    n, size, _ = P.shape
    larger = np.zeros((n, size + 1, size + 1))
    larger[:, :size, :size] = P
    larger[:, size, size] = 1 / ridge
    return larger


class LabelExperts(Experts):
    """Experts for classes: least squares scores become probabilities by a temperature each."""

    eta = 1.0
    n_ensembles = 2
    linear_rates = _FORGETTING
    run = staticmethod(pass_labels)
    nothing = -1

    def begin(self, n_columns: int, n_linear: int | None, n_outputs: int, n_inputs: int) -> None:
        super().begin(n_columns, n_linear, n_outputs, n_inputs)
        self.log_temperatures = np.full(len(self.drifts), np.log(4.0))

    @property
    def tree_names(self) -> list[str]:
        return ["trees", "residual trees"] if self.forest.n_trees else []

    @property
    def _fields(self) -> tuple[str, ...]:
        return (*super()._fields, "log_temperatures")

    @property
    def _width(self) -> int:
        return int(self.heads_W.shape[1])

    @property
    def _others(self) -> Array:
        return self.log_temperatures

    def replay(self, Phi: Array, labels: Array, weights: Array) -> None:
        """Let records come again, to the heads alone; a weight of 0 leaves one out."""
        K = self.heads_W.shape[1]
        self._replay(Phi, np.eye(K)[labels.astype(np.int64)] - 1 / K, weights)


class NumberExperts(Experts):
    """Experts for numbers: targets are standardised by the moments of those learnt."""

    eta = 2.0
    n_ensembles = 1
    n_scales = 2
    linear_rates = _LINEAR_DRIFTS
    run = staticmethod(pass_numbers)
    nothing = math.nan

    def begin(self, n_columns: int, n_linear: int | None, n_outputs: int, n_inputs: int) -> None:
        super().begin(n_columns, n_linear, n_outputs, n_inputs)
        self.moments = np.zeros(MOMENTS)
        self.linear_moments = np.zeros(MOMENTS)
        self.squared_errors = np.zeros(2)
        self.levels = np.zeros(2 if self.forest.n_trees else 1)
        self.asinh_moments = np.zeros(MOMENTS)
        self.magnitudes = np.zeros(1 + MAGNITUDES)
        self.target_bounds = np.zeros(2)

    @property
    def slowest_head(self) -> Array:
        """Those of the scale whose heads are heard more."""
        H, E = len(self.drifts), len(self.linear_W)
        weights = np.array([*self.weights.values()])
        scale = int(weights[H + E :][:H].sum() > weights[:H].sum())
        return super().slowest_head[scale : scale + 1]

    def forget_heads(self) -> None:
        super().forget_heads()
        for part in (self.moments, self.asinh_moments, self.magnitudes, self.target_bounds):
            part[:] = 0.0

    @property
    def rules(self) -> Rules:
        return {**super().rules, "moments": are_moments, "linear_moments": are_moments}

    @property
    def tree_names(self) -> list[str]:
        return ["residual trees", "level", "residual trees, level"] if self.forest.n_trees else ["level"]

    @property
    def _fields(self) -> tuple[str, ...]:
        own = ("moments", "linear_moments", "squared_errors", "levels", "asinh_moments", "magnitudes", "target_bounds")
        return (*super()._fields, *own)

    @property
    def _width(self) -> int:
        return 3

    @property
    def _others(self) -> tuple[Array, ...]:
        asinh = tuple(self._asinh)
        return tuple(TargetStatistics(self.moments, self.linear_moments, self.levels, self.squared_errors, asinh))

    @property
    def _asinh(self) -> AsinhStatistics:
        return AsinhStatistics(self.asinh_moments, self.magnitudes, self.target_bounds)

    def replay(self, Phi: Array, targets: Array, weights: Array) -> None:
        """Let records come again, to the heads alone; a weight of 0 leaves one out."""
        truths = np.empty((len(Phi), 2))
        nearer = np.array([near(self.linear_moments, y) for y in targets])
        standardise_targets(nearer, weights, self.moments, truths[:, 0])
        replay_asinh(nearer, weights, self._asinh, truths[:, 1])
        self._replay(Phi, truths, weights)
