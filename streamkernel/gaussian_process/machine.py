"""The Gaussian process: its state, and `advance`, the one way it learns.

Every labeled record is learned at once. Where inputs are standardized or the bandwidth is left to the data, the first
records fix both: they are learned again at each of some stages, and from the last one on both stay. Where an input has
outgrown its scale, the machine starts over.

The posterior is that of recursive least squares on random features: exact for the kernel that the features have.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from streamkernel.compute.posterior import INFORMATION, PREDICTION, UNIT, UNIT_WITH, VARIANCE, Posterior, pass_posterior
from streamkernel.compute.recursive import apply_deferred
from streamkernel.fields import Rules, all_finite, array, checked, number, state_mismatch, whole
from streamkernel.gaussian_process.doubly_stochastic import VarianceFunctions
from streamkernel.gaussian_process.features import FixedScaler, ProcessFeatures
from streamkernel.growth.feature_scale import first_bandwidth, occupied, usual
from streamkernel.growth.waiting import WARM_UP, WarmUpBuffer
from streamkernel.kernels.drawing import median_bandwidth
from streamkernel.records.batches import BatchEncoder, Records
from streamkernel.records.inputs import Inputs
from streamkernel.records.results import BatchResult
from streamkernel.records.rows import Rows
from streamkernel.records.targets import Encoded, Numbers, in_variances
from streamkernel.state import Array, State


@dataclass(eq=False)
class LeastSquaresPosterior:
    """The Gaussian posterior of the coefficients of D columns, given noisy targets."""

    rho: float  #: The variance of the noise over that of the process
    drift: float  #: What a coefficient's variance gains a record, over the prior's
    centers: bool  #: Whether targets are taken less their running mean

    rules: ClassVar[Rules] = {"posterior_P": all_finite, "posterior_W": all_finite, "posterior_sums": all_finite}

    def __post_init__(self) -> None:
        self.begin(0)

    def begin(self, n_columns: int) -> None:
        """Begin with the prior."""
        self._P = np.eye(n_columns) / self.rho
        self._W = np.zeros((2, n_columns))
        self._deferred = np.zeros(n_columns + 2)
        self._sums = np.zeros(2)

    @property
    def n_columns(self) -> int:
        """D; 0 before it begins."""
        return len(self._P)

    @property
    def P(self) -> Array:
        """(Phi^T Phi + rho I)^-1, float64 of shape (D, D), a copy."""
        lower = np.tril(self._settled)
        return np.asarray(lower + np.tril(lower, -1).T)

    @property
    def nbytes(self) -> int:
        """Bytes of the matrix and the coefficients."""
        return int(self._P.nbytes + self._W.nbytes)

    def advance(self, Phi: Array, targets: Array, weights: Array, moments: Array) -> Array:
        """Predict, then learn, rows.

        - Phi, targets, weights: Columns (n, D), targets (n,), NaN for none, and weights (n,).
        - moments: Of the targets, float64 of shape (8,); updated.

        Returns float64 of shape (n, 4), as `pass_posterior` has them.
        """
        out = np.empty((len(Phi), 4))
        parts = Posterior(
            self._P,
            self._W,
            self._deferred,
            moments,
            self._sums,
            self.rho,
            self.drift / self.rho,
            self.centers,
        )
        pass_posterior(Phi, targets, weights, tuple(parts), out)
        return out

    def state(self) -> State:
        """The fields of the state: of P its lower triangle, row after row."""
        P = self._settled
        fields = {
            "posterior_P": P[np.tril_indices(len(P))],
            "posterior_W": self._W.copy(),
            "posterior_sums": self._sums.copy(),
        }
        return checked(fields, self.rules)

    def load_state(self, state: State, n_columns: int) -> None:
        """Take the fields that `state` gave; ValueError where they do not fit."""
        checked(state, self.rules)
        self.begin(n_columns)
        lower = array(state, "posterior_P", np.float64, n_columns * (n_columns + 1) // 2)
        self._P[np.tril_indices(n_columns)] = lower
        diagonal = np.diagonal(self._P)
        if (diagonal < 0).any() or (diagonal > (1 + 1e-9) / self.rho).any():
            raise state_mismatch("posterior_P")
        self._W = array(state, "posterior_W", np.float64, 2, n_columns)
        self._sums = array(state, "posterior_sums", np.float64, 2)
        if self._sums[INFORMATION] < 0 or not math.isfinite(self._sums[INFORMATION]):
            raise state_mismatch("posterior_sums")

    @property
    def _settled(self) -> Array:
        if self._deferred.any():
            apply_deferred(self._P, self._deferred, 1.0 / self.rho)
        return self._P


_DTYPE = np.dtype("float64")
_NO_KEYS = np.zeros(0, np.uint64)
#: Rows that go through features and posterior at a time.
AT_ONCE = 256
#: Labeled records after which those so far are learned again; the last are all of the warm-up.
STAGES = (12, 25, 50, 100, WARM_UP)
#: Labeled records from one look at the scales of inputs to the next.
LOOK = 200
#: How often an input that comes later must have been observed to have a scale.
OFTEN = 100
#: Columns of a prediction: mean, deviation, and the variance of the targets so far, which losses are divided by.
MEAN, DEVIATION, TARGET_VARIANCE = range(3)


@dataclass(eq=False)
class GaussianProcessMachine:
    """Inputs, targets, features and posterior of a Gaussian process."""

    inputs: Inputs
    targets: Numbers
    features: ProcessFeatures
    posterior: LeastSquaresPosterior
    functions: VarianceFunctions | None  #: What estimates the variance in place of the posterior; None is the posterior
    noise: float  #: sigma^2, in the unit of the prior's variance
    with_noise: bool  #: Whether deviations are those of a new target, the noise included

    def __post_init__(self) -> None:
        self.n_records = 0
        self._encoder = BatchEncoder(self.inputs, self.targets)
        self._set_seed(self.features.seed)
        self._warm_up = WarmUpBuffer() if self.inputs.standardize or self.features.kernel.bandwidth is None else None
        self._scaler = FixedScaler(self.inputs.columns, self.inputs.standardize) if self.inputs.standardize else None
        if self._scaler is not None:
            self.inputs.scaler = self._scaler

    def advance(self, xs: Records, ys: Sequence[Any], ws: Sequence[float] | None = None) -> BatchResult:
        """Predict records, then learn them. Weights divide the variance of the noise."""
        parts = [np.zeros((0, 3))]
        truths = [np.zeros(0)]
        for rows, targets, weights in self._encoder.take(xs, ys, ws):
            truths.append(np.array(targets, np.float64))  # None is NaN
            parts += self._pass(rows, truths[-1], weights, predict=True)
        return self._result(np.concatenate(truths), np.concatenate(parts))

    def learn(self, xs: Records, ys: Sequence[Any], ws: Sequence[float] | None = None) -> None:
        """Learn records as `advance` does, without predictions."""
        for rows, targets, weights in self._encoder.take(xs, ys, ws):
            self._pass(rows, np.array(targets, np.float64), weights, predict=False)

    def learn_plain(self, x: Mapping[Any, Any], y: Any) -> bool:  # noqa: ARG002 - as other machines
        """False: there is no shorter way for a record of known numbers."""
        return False

    def predict(self, xs: Records) -> Array:
        """The predictions of records, (n, 3): `MEAN`, `DEVIATION`, `TARGET_VARIANCE`; nothing is changed."""
        parts = [np.zeros((0, 3))]
        for _, rows in self._encoder.encoded(xs, [None] * len(xs)):
            n = len(rows.values)
            parts += self._pass(rows, np.full(n, np.nan), np.ones(n), predict=True)
        return np.concatenate(parts)

    def state(self) -> State:
        """The fields of the state."""
        warm_up, functions = self._warm_up, self.functions
        return {
            "n_records": self.n_records,
            **self.inputs.state(),
            **self.targets.state(),
            "seed": self.features.seed,
            "bandwidth": self.features.bandwidth,
            **self.posterior.state(),
            **({} if functions is None else functions.state(len(self.inputs))),
            **({} if warm_up is None else warm_up.state(len(self.inputs))),
        }

    def load_state(self, state: State) -> None:
        """Take the fields that `state` gave; ValueError where they do not fit, and then the machine is spoilt."""
        self.n_records = whole(state, "n_records")
        self.inputs.load_state(state)
        self.targets.load_state(state)
        self._set_seed(whole(state, "seed", most=2**64 - 1))
        bandwidth = number(state, "bandwidth")
        if not 0 <= bandwidth < np.inf or (self.n_records and not bandwidth):
            raise state_mismatch("bandwidth")
        self.features.bandwidth = bandwidth
        self.posterior.load_state(state, self.features.n_columns if self.n_records else 0)
        if self.functions is not None:
            self.functions.load_state(state, len(self.inputs))
        warms_up = any(name.startswith("warm_up_") for name in state)
        self._warm_up = WarmUpBuffer.from_state(state, len(self.inputs)) if warms_up else None
        if self._warm_up is not None and not all(isinstance(y, float) for y in self._warm_up.targets):
            raise state_mismatch("warm_up_targets")

    @property
    def nbytes(self) -> int:
        """Bytes of matrices and coefficients."""
        return self.posterior.nbytes + (0 if self.functions is None else self.functions.nbytes)

    def _set_seed(self, seed: int) -> None:
        self.features.begin(seed)
        if self.functions is not None:
            self.functions.set_seed(seed)

    def _pass(self, rows: Rows, y: Array, weights: Array, predict: bool) -> list[Array]:
        """Predict, then learn, encoded records in segments that end where more than the posterior changes."""
        learned = ~np.isnan(y)
        so_far = np.cumsum(learned)
        parts = []
        start = done = 0
        while start < len(y):
            stop = min(int(so_far.searchsorted(done + self._room)) + 1, start + AT_ONCE, len(y))
            if not self.posterior.n_columns and not learned[start]:
                # What comes before the first label is predicted by nothing.
                stop = start + int(learned[start:stop].argmax() or stop - start)
            segment = slice(start, stop)
            parts.append(self._pass_segment(rows.part(segment), y[segment], weights[segment], predict))
            start = segment.stop
            done = int(so_far[start - 1])
        return parts

    @property
    def _room(self) -> int:
        """Labeled records until the next thing is due."""
        rooms = [AT_ONCE]
        if self.functions is not None:
            rooms.append(self.functions.room)
        if self._warm_up is not None:
            n = len(self._warm_up.targets)
            rooms.append(next(stage for stage in STAGES if stage > n) - n)
        else:
            rooms.append(LOOK - self.n_records % LOOK)
        return min(rooms)

    def _pass_segment(self, rows: Rows, y: Array, weights: Array, predict: bool) -> Array:
        learned = ~np.isnan(y)
        X = self.inputs.scaler.scale(rows, learned, _DTYPE)
        begins = not self.posterior.n_columns
        if begins:
            if not learned.any():
                return self._prior(len(X))
            self._begin(X[:1], int(rows.n_known[0]))
        Phi = self.features.of(X, self.inputs.columns.keys[: rows.values.shape[1]], rows.extra_keys)
        passed = self.posterior.advance(Phi, y, weights, self.targets.moments)
        out = self._in_units(passed, rows, X) if predict else passed
        if begins and predict:
            out[:1] = self._prior(1)
        if learned.any():
            self._keep(rows, X, y, weights, learned)
        return out

    def _keep(self, rows: Rows, X: Array, y: Array, weights: Array, learned: Array) -> None:
        """Let learned rows wait for what comes later: a step of the variance's functions, the end of the warm-up."""
        # A call may hold inputs that only later records bring.
        n_known = int(rows.n_known[-1])
        self.n_records += int(learned.sum())
        if self.functions is not None:
            self.functions.take(X[learned, :n_known], weights[learned], self.inputs, self.features.bandwidth)
        if self._warm_up is not None:
            self._warm_up.append(rows.values[learned], y[learned].tolist(), weights[learned])
            if len(self._warm_up.targets) in STAGES:
                self._learn_again(self._warm_up, n_known)
        elif self._scaler is not None and not self.n_records % LOOK:
            self._look_at_scales(self._scaler)

    def _begin(self, x: Array, n_known: int) -> None:
        """Begin with the prior, and with a bandwidth by the first row and its inputs where none is given."""
        kernel = self.features.kernel
        if not self.features.bandwidth:
            standardized = self.inputs.standardize
            first = kernel.initial_bandwidth(max(n_known, 1)) if standardized else first_bandwidth(kernel, occupied(x))
            self.features.bandwidth = first
        self.posterior.begin(self.features.n_columns)

    def _look_at_scales(self, scaler: FixedScaler) -> None:
        """Fix the scales of inputs that came late, and start over where an input has outgrown its own."""
        if not scaler.is_outgrown:
            scaler.fix(OFTEN, again=False)
            return
        scaler.fix(OFTEN, again=True)
        self.posterior.begin(self.features.n_columns)
        if self.functions is not None:
            self.functions.forget()
        self._warm_up = WarmUpBuffer()

    def _learn_again(self, warm_up: WarmUpBuffer, n_known: int) -> None:
        """Learn the first records again, all scaled by the moments of now, with the bandwidth that they give."""
        values, targets, weights = warm_up.rows(len(self.inputs)), np.array(warm_up.targets), np.array(warm_up.weights)
        if self._scaler is not None:
            self._scaler.fix(len(targets) // 2, again=True)
        X = self.inputs.scaler.as_of_now(values)
        kernel = self.features.kernel
        if kernel.bandwidth is None:
            # Rows with an outlier are far from all others.
            self.features.bandwidth = median_bandwidth(kernel, occupied(usual(X) if self.inputs.standardize else X))
        if not warm_up.room:
            self._warm_up = None
        self.targets.forget()
        self.posterior.begin(self.features.n_columns)
        Phi = self.features.of(X, self.inputs.columns.keys, _NO_KEYS)
        self.posterior.advance(Phi, targets, weights, self.targets.moments)
        if self.functions is not None:
            self.functions.forget()
            start = 0
            while start < len(X):
                part = slice(start, start + self.functions.room)
                self.functions.take(X[part, :n_known], weights[part], self.inputs, self.features.bandwidth)
                start = part.stop

    def _prior(self, n: int) -> Array:
        """The predictions of n records before anything was learned."""
        variance = self.features.kappa + (self.noise if self.with_noise else 0.0)
        return np.tile([0.0, np.sqrt(variance), 0.0], (n, 1))

    def _in_units(self, passed: Array, rows: Rows, X: Array) -> Array:
        """Predictions in the unit of the targets."""
        unit = passed[:, UNIT]
        if self.functions is None:
            variance = self.noise * passed[:, VARIANCE]
        else:
            variance = self.functions.variances(rows, X, self.inputs, self.features.bandwidth)
        if self.with_noise:
            variance = variance + self.noise
        deviation = np.sqrt(variance)
        if self.posterior.centers:
            deviation = deviation * unit
        return np.stack([passed[:, PREDICTION], deviation, passed[:, UNIT_WITH] ** 2], axis=1)

    def _result(self, y: Array, predictions: Array) -> BatchResult:
        losses = in_variances((predictions[:, MEAN] - y) ** 2, predictions[:, TARGET_VARIANCE])
        return BatchResult(Encoded(y, np.zeros((len(y), 2))), predictions[:, [MEAN]], losses, predictions[:, DEVIATION])
