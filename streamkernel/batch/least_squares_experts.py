"""The experts of a batch estimator: least squares heads on all columns, linear experts on the last, and their mixture.

They learn from sums over records. Those of one record are learned as `adaptive.experts` has it, except that the
temperatures of classes are chosen from a grid, by losses that add up, and linear experts have least squares, too.
"""

import abc
import copy
import dataclasses
from typing import ClassVar, Self

import numpy as np

from streamkernel.batch.sums import LeastSquaresSums, coefficients_of_one, learn_one_sum, learn_sums, whole
from streamkernel.compute.cholesky import add_gram, add_products
from streamkernel.compute.experts import DISCOUNT, HIGHEST_LOG_TEMPERATURE, hedge_weights
from streamkernel.compute.features import mean_outer
from streamkernel.compute.label_pass import SMOOTHING
from streamkernel.compute.moments import LARGEST, TARGETS
from streamkernel.compute.number_pass import WORST
from streamkernel.fields import Rules, all_finite, all_from_zero, array, checked, state_mismatch
from streamkernel.losses import softmax
from streamkernel.state import Array, State

#: q of the two linear experts.
LINEAR_DRIFTS = (0.0, 1e-3)
#: log tau that the experts for classes choose from, and the one that they begin with.
LOG_TEMPERATURES = np.linspace(0.0, HIGHEST_LOG_TEMPERATURE, 17)
FIRST_LOG_TEMPERATURE = float(np.log(4.0))
#: Numbers that are in memory at once where all temperatures are tried.
_CELLS = 2**20
#: The most that rounding may leave of P_ij above the bound of its diagonal.
_BEYOND = 1.0 + 1e-9


class LeastSquaresExperts(abc.ABC):
    """H heads of K outputs on D columns and E linear experts on the last L, each with a drift rate of its own.

    - ridge: rho.
    - drift_rates: q of each head.
    - heads_P, heads_W: Inverse covariances, float64 of shape (H, D, D), lower triangles, the rest 0, and coefficients,
      (H, K, D).
    - linear_P, linear_W: The same of the linear experts, (E, L, L) and (E, K, L).
    - losses: The experts' discounted losses, heads first, (J,).
    - tried_losses: Those that they would have had with each of the settings there are, (J, S).
    """

    #: The rate of Hedge.
    eta: ClassVar[float]
    #: The discounted losses of an expert's settings before the first record, shape (S,).
    first_losses: ClassVar[Array]
    rules: ClassVar[Rules] = {
        **dict.fromkeys(("heads_P", "linear_P"), all_finite),
        **dict.fromkeys(("heads_W", "linear_W"), lambda W: float(np.abs(W).max(initial=0.0)) <= LARGEST),
        **dict.fromkeys(("losses", "tried_losses"), all_from_zero),
    }

    def __init__(self, ridge: float, drift_rates: tuple[float, ...]) -> None:
        self.ridge = ridge
        self.drifts = tuple(map(float, drift_rates))
        self.begin(0, None, 0)

    def begin(self, n_columns: int, n_linear: int | None, n_outputs: int) -> None:
        """Begin with nothing learned; None linear columns, now or later, is no linear experts."""
        self.linear_drifts = () if n_linear is None else LINEAR_DRIFTS
        H, E, L = len(self.drifts), len(self.linear_drifts), (n_linear or 0) + 1
        self.heads_P = np.tile(np.eye(n_columns) / self.ridge, (H, 1, 1))
        self.heads_W = np.zeros((H, n_outputs, n_columns))
        self.linear_P = np.tile(np.eye(L) / self.ridge, (E, 1, 1))
        self.linear_W = np.zeros((E, n_outputs, L))
        self.losses = np.zeros(H + E)
        self.tried_losses = np.tile(self.first_losses, (H + E, 1))

    @property
    def began(self) -> bool:
        """Whether there are columns; one of them is always 1."""
        return self.heads_W.shape[2] > 0

    @property
    def n_outputs(self) -> int:
        """K."""
        return int(self.heads_W.shape[1])

    @property
    def names(self) -> list[str]:
        """The experts."""
        linear = [f"linear, drift {q:g}" for q in self.linear_drifts]
        return [f"head, drift {q:g}" for q in self.drifts] + linear

    @property
    def weights(self) -> Array:
        """The experts' weights in their mixture, (J,)."""
        weights = np.empty(len(self.losses))
        hedge_weights(self.losses, np.ones(len(weights)), self.eta, weights)
        return weights

    @property
    def nbytes(self) -> int:
        """Bytes of the matrices."""
        return sum(int(part.nbytes) for part in (self.heads_P, self.heads_W, self.linear_P, self.linear_W))

    def without_covariances(self) -> Self:
        """Experts of the same coefficients, which predict and give sums, but can learn none."""
        other = copy.copy(self)
        other.heads_P, other.linear_P = np.zeros((0, 0, 0)), np.zeros((0, 0, 0))
        return other

    def add_column(self) -> None:
        """One more input became a column: nothing is known of it."""
        more = (0, 0), (0, 1), (0, 1)
        self.heads_P, self.linear_P = np.pad(self.heads_P, more), np.pad(self.linear_P, more)
        self.heads_P[:, -1, -1] = self.linear_P[:, -1, -1] = 1 / self.ridge
        self.heads_W, self.linear_W = (np.pad(W, ((0, 0), (0, 0), (0, 1))) for W in (self.heads_W, self.linear_W))

    def widen(self, n_outputs: int, sums: LeastSquaresSums) -> LeastSquaresSums:  # noqa: ARG002 - numbers have one
        """Have `n_outputs` outputs, and give the sums of a batch by the coefficients as they are then."""
        return sums

    def scores(self, Phi: Array) -> Array:
        """The experts' scores of columns (n, D), float64 of shape (n, J, K)."""
        parts = []
        for W in (self.heads_W, self.linear_W):
            coefficients = np.ascontiguousarray(W.reshape(-1, W.shape[2]))
            scores = np.zeros((len(Phi), len(coefficients)))
            add_products(np.ascontiguousarray(Phi[:, Phi.shape[1] - W.shape[2] :]), coefficients, scores)
            parts.append(scores.reshape(len(Phi), *W.shape[:2]))
        return np.concatenate(parts, axis=1)

    def sums(self, Phi: Array, y: Array, weights: Array, scores: Array) -> LeastSquaresSums:
        """What is learned of records with columns (n, D), encoded targets and weights (n,) and scores (n, J, K)."""
        H, D, L = len(self.drifts), Phi.shape[1], self.linear_W.shape[2]
        counted = weights > 0
        Phi, y, weights, scores = Phi[counted], y[counted], weights[counted], scores[counted]
        gram = np.zeros((D, D))
        P = Phi * np.sqrt(weights)[:, None]
        add_gram(P, 0, len(P), 0, 1.0, gram)
        errors = (self.truths(y, scores.shape[2])[:, None] - scores) * weights[:, None, None]
        heads, linear = (
            _outer(errors[:, experts], np.ascontiguousarray(Phi[:, first:]))
            for experts, first in ((slice(H), 0), (slice(H, None), D - L))
        )
        return LeastSquaresSums(len(counted), int(counted.sum()), gram, heads, linear, self.tried(y, scores))

    @property
    def no_sums(self) -> LeastSquaresSums:
        """The sums of no records."""
        D = self.heads_W.shape[2]
        no_heads, no_linear = np.zeros_like(self.heads_W), np.zeros_like(self.linear_W)
        return LeastSquaresSums(0, 0, np.zeros((D, D)), no_heads, no_linear, np.zeros_like(self.tried_losses))

    def learn(self, sums: LeastSquaresSums) -> None:
        """Learn records by their sums, for each of their outputs."""
        n = sums.n_counted
        if not n:
            return
        largest, mean = 1 / self.ridge, sums.tried / n
        D, L = self.heads_W.shape[2], self.linear_W.shape[2]
        kept, added = _shares(n)
        self.losses = kept * self.losses + added * mean[np.arange(len(mean)), self.settings]
        self.tried_losses = kept * self.tried_losses + added * mean
        linear_gram = np.ascontiguousarray(sums.gram[D - L :, D - L :])
        for P, W, gram, cross, drifts in (
            (self.heads_P, self.heads_W, sums.gram, sums.heads, self.drifts),
            (self.linear_P, self.linear_W, linear_gram, sums.linear, self.linear_drifts),
        ):
            for j, drift in enumerate(drifts):
                if n == 1:
                    learn_one_sum(P[j], W[j], gram, cross[j], len(gram) - L, drift, largest)
                else:
                    learn_sums(P[j], W[j], gram, cross[j], n * drift, largest)
            np.clip(W, -LARGEST, LARGEST, out=W)

    def judge(self, Phi: Array, y: Array, weights: Array, n: int) -> None:
        """Weigh the experts after their first n records, which none of them could predict.

        Fresh experts that have learned every other of some of these records are judged by the rest.

        - Phi, y, weights: Columns (m, D), encoded targets and weights of some of the records.
        - n: All records of a weight above 0.
        """
        counted = weights > 0
        if counted.sum() < 2:
            return
        Phi, y, weights = Phi[counted], y[counted], weights[counted]
        fresh = type(self)(self.ridge, self.drifts)
        n_linear = self.linear_W.shape[2] - 1 if self.linear_drifts else None
        fresh.begin(self.heads_W.shape[2], n_linear, self.n_outputs)
        learned, rest = slice(0, None, 2), slice(1, None, 2)
        fresh.learn(fresh.sums(Phi[learned], y[learned], weights[learned], fresh.scores(Phi[learned])))
        mean = self.tried(y[rest], fresh.scores(Phi[rest])) / len(y[rest])
        kept, added = _shares(n)
        self.tried_losses = kept * np.tile(self.first_losses, (len(mean), 1)) + added * mean
        self.losses = added * mean[np.arange(len(mean)), self.settings]

    @property
    def settings(self) -> Array:
        """The setting of each expert that would have had the least losses, (J,)."""
        return np.asarray(self.tried_losses.argmin(axis=1))

    @abc.abstractmethod
    def truths(self, y: Array, n_outputs: int) -> Array:
        """What the scores of encoded targets should be, (n, K)."""

    @abc.abstractmethod
    def tried(self, y: Array, scores: Array) -> Array:
        """The sums of the losses of scores (n, J, K) by each setting, (J, S)."""

    @abc.abstractmethod
    def mixture(self, scores: Array) -> Array:
        """The prediction by the experts' scores (n, J, K), (n, K)."""

    def mixed(self, predictions: Array) -> Array:
        """The experts' predictions (n, J, K) by their weights, (n, K), one after the other: no row's bits change."""
        out = np.zeros((len(predictions), predictions.shape[2]))
        for j, weight in enumerate(self.weights.tolist()):
            out += weight * predictions[:, j]
        return out

    def state(self) -> State:
        """The fields of the state."""
        return checked({name: getattr(self, name).copy() for name in self.rules}, self.rules)

    def load_state(self, state: State, n_columns: int, n_linear: int | None, n_outputs: int) -> None:
        """Take the fields that `state` gave; ValueError where they do not fit."""
        checked(state, self.rules)
        self.begin(n_columns, n_linear, n_outputs)
        for name in self.rules:
            setattr(self, name, array(state, name, np.float64, *getattr(self, name).shape))
        for name in ("heads_P", "linear_P"):
            P = getattr(self, name)
            if (np.abs(P) > _BEYOND / self.ridge).any() or np.triu(P, 1).any():
                raise state_mismatch(name)


class ClassLeastSquares(LeastSquaresExperts):
    """Experts for classes: least squares scores become probabilities, each expert's by a temperature of the grid."""

    eta = 1.0
    # As one record would say it, so that those after it decide.
    first_losses = (LOG_TEMPERATURES - FIRST_LOG_TEMPERATURE) ** 2

    def widen(self, n_outputs: int, sums: LeastSquaresSums) -> LeastSquaresSums:
        """As all experts; what was learned is as if the classes that come had been known from the beginning."""
        known = self.n_outputs
        if n_outputs <= known:
            return sums
        # What the truths of all records so far change by: -1 / K, and +1 / K of before for the classes of before.
        shifts = np.full(n_outputs, -1 / n_outputs)
        shifts[:known] += 1 / max(known, 1)
        more = (0, 0), (0, n_outputs - known), (0, 0)
        self.heads_W, self.linear_W = np.pad(self.heads_W, more), np.pad(self.linear_W, more)
        crosses = []
        for P, W, cross in ((self.heads_P, self.heads_W, sums.heads), (self.linear_P, self.linear_W, sums.linear)):
            constant, first = W.shape[2] - self.linear_W.shape[2], -W.shape[2]
            gram = np.ascontiguousarray(whole(sums.gram)[first:, first:])
            ones = np.array([coefficients_of_one(own, constant, self.ridge) for own in P]).reshape(len(P), -first)
            explained = np.zeros_like(ones)
            add_products(ones, gram, explained)
            W += shifts[:, None] * ones[:, None]
            crosses.append(cross - shifts[:, None] * explained[:, None])
        return dataclasses.replace(sums, heads=crosses[0], linear=crosses[1])

    def truths(self, y: Array, n_outputs: int) -> Array:
        return np.asarray(np.eye(n_outputs)[y.astype(np.int64)] - 1 / max(n_outputs, 1))

    def tried(self, y: Array, scores: Array) -> Array:
        n, J, K = scores.shape
        total = np.zeros((J, len(LOG_TEMPERATURES)))
        step = max(_CELLS // max(J * total.shape[1] * K, 1), 1)
        for start in range(0, n, step):
            some, labels = scores[start : start + step, :, None], y[start : start + step].astype(np.int64)
            p = _softmax(some * np.exp(LOG_TEMPERATURES)[:, None])[np.arange(len(labels)), :, :, labels]
            total -= np.log((1 - SMOOTHING) * p + SMOOTHING / K).sum(axis=0)
        return total

    def mixture(self, scores: Array) -> Array:
        p = self.mixed(_softmax(scores * np.exp(LOG_TEMPERATURES[self.settings])[:, None]))
        return np.asarray(p / p.sum(axis=1, keepdims=True))


class NumberLeastSquares(LeastSquaresExperts):
    """Experts for numbers, which are standardized."""

    eta = 2.0
    first_losses = np.zeros(1)

    def truths(self, y: Array, n_outputs: int) -> Array:  # noqa: ARG002
        return y[:, None]

    def tried(self, y: Array, scores: Array) -> Array:
        # As the adaptive regressor weighs its experts.
        capped = np.minimum((y[:, None] - scores[:, :, 0]) ** 2, WORST)
        return np.asarray((0.4 * capped / (capped.mean(axis=1, keepdims=True) + 0.05)).sum(axis=0))[:, None]

    def mixture(self, scores: Array) -> Array:
        return self.mixed(scores)

    def change_units(self, factor: float, shift: float) -> None:
        """Have coefficients whose predictions stay, in units of which one of before has `factor`, moved by `shift`.

        Nothing changes where the units are so different that what was learned is of another stream.
        """
        if max(factor, abs(shift)) <= TARGETS.far:
            for W in (self.heads_W, self.linear_W):
                W *= factor
                W[:, :, W.shape[2] - self.linear_W.shape[2]] += shift
                np.clip(W, -LARGEST, LARGEST, out=W)


def _shares(n: int) -> tuple[float, float]:
    """What n records leave of discounted losses, and how often their mean is added."""
    kept = DISCOUNT**n
    return kept, (1 - kept) / (1 - DISCOUNT)


def _softmax(scores: Array) -> Array:
    """The softmax of scores (..., K) over the last axis."""
    if not scores.size:
        return scores
    return np.asarray(softmax(scores.reshape(-1, scores.shape[-1])).reshape(scores.shape))


def _outer(errors: Array, Phi: Array) -> Array:
    """The sums of errors (n, J, K) times columns (n, D), (J, K, D)."""
    n, J, K = errors.shape
    out = np.empty((J * K, Phi.shape[1]))
    mean_outer(Phi, np.ascontiguousarray(errors.reshape(n, J * K)) * n, out)
    return out.reshape(J, K, Phi.shape[1])
