"""The paper's estimators of a Gaussian process's variance: by an operator, and by functions of given points."""

import abc
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from river import base

from streamkernel.arguments import Representable, keep_arguments, require_whole
from streamkernel.compute.cholesky import factorize, solve
from streamkernel.compute.gaussians import mix64
from streamkernel.domain import Domain
from streamkernel.fields import all_finite, array, checked
from streamkernel.gaussian_process.doubly_stochastic import DTYPE, VarianceFunctions, keys_of, row_products
from streamkernel.growth.feature_scale import occupied
from streamkernel.kernels import Kernel
from streamkernel.kernels.drawing import kernel_matrix
from streamkernel.records.inputs import Inputs
from streamkernel.records.rows import Rows, is_met
from streamkernel.state import Array, State, excerpt

#: Added to the diagonal of the points' kernel matrix: weights stay small, and so do the functions' errors times them.
_JITTER = 1e-3
#: Points are as many functions, and their matrix is factorized after every step.
MOST_POINTS = 4096
#: Records of a step, and features of a block: of the operator, a block has the square of this number of coefficients.
MOST_RECORDS, MOST_BLOCK = 2**16, 2**13


class VarianceEstimator(Representable, base.Base, abc.ABC):
    """The base class of variance estimators that replace the least-squares posterior."""

    batch_size: int
    block_size: int
    max_features: int | None
    sample_size: int | None

    def __getstate__(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self._get_params()}

    def __setstate__(self, state: dict[str, Any]) -> None:
        # By the constructor: what it refuses cannot come from a checkpoint.
        type(self).__init__(self, **state)

    def _check(self) -> None:
        for name, most in (("batch_size", MOST_RECORDS), ("block_size", MOST_BLOCK)):
            require_whole(name, getattr(self, name), 1, most)
        if self.max_features is not None:
            require_whole("max_features", self.max_features, self.block_size)
        if self.sample_size is not None:
            require_whole("sample_size", self.sample_size, 1)

    @property
    def _sizes(self) -> tuple[int, int, int | None, int | None]:
        most = None if self.max_features is None else int(self.max_features) // int(self.block_size)
        return int(self.batch_size), int(self.block_size), most, self.sample_size

    @abc.abstractmethod
    def functions(self, kernel: Kernel, rho: float) -> VarianceFunctions:
        """Return fresh functions to learn, for a kernel and the ratio of the noise's variance to the process's."""


class VarianceOperator(VarianceEstimator):
    """The variance by the operator A = C (C + sigma^2 / n)^-1, with learned coefficients theta_ij.

    k(x, x) - A(x, x) is the posterior's variance at any x. theta is a matrix over two independent streams of features i
    and j. Its memory and the cost of a step grow with the square of `max_features`.

    Parameters
    ----------
    batch_size
        B, the labeled records of a step, at most 65,536. Defaults to 64.
    block_size
        F, the features of a block in each of the two streams, at most 8,192. Defaults to 32.
    max_features
        The largest number of features of each stream. None is the paper's unbounded operator. At the bound, steps
        update old blocks, with all features of the first stream for k(x, .). Defaults to 256, which needs 2 MB.
    sample_size
        n of the posterior. None (the default) is the number of records learned so far. Set it if records come several
        times.

    Examples
    --------
    >>> from streamkernel import GaussianProcessRegressor
    >>> from streamkernel.gaussian_process import VarianceOperator
    >>> model = GaussianProcessRegressor(variance=VarianceOperator(batch_size=16), n_features=16, seed=1)
    >>> for i in range(400):
    ...     model.learn_one({"a": i % 10}, float(i % 10))
    >>> near, far = (model.predict_one({"a": a}, with_dist=True).sigma for a in (5, 50))
    >>> near < far
    True

    References
    ----------
    [^1]: Dai et al., "Scalable kernel methods via doubly stochastic gradients", 2014, section 4 and appendix D.

    """

    def __init__(
        self,
        batch_size: int = 64,
        block_size: int = 32,
        max_features: int | None = 256,
        sample_size: int | None = None,
    ) -> None:
        keep_arguments(self, locals())
        self._check()

    def functions(self, kernel: Kernel, rho: float) -> VarianceFunctions:
        return _Operator(kernel, rho, *self._sizes)


class TestPointFunctions(VarianceEstimator):
    """The variance by the functions f_i(.) = k(.)^T (K + sigma^2 I)^-1 k(x_i) for given points x_i.

    k(x_i, x_i) - f_i(x_i) is the posterior's variance at x_i. Elsewhere it is k(x, x) - sum_i a_i f_i(x), with sum_i
    a_i k(x_i, .) as an interpolation of k(x, .). Far from all points, that is too large. Memory and the cost of a step
    are linear in points and features.

    Parameters
    ----------
    points
        The points as inputs by name, at most 4,096. An input that no record has brought counts as missing.
    batch_size, sample_size
        As in `VarianceOperator`.
    block_size
        F, the features of a block, at most 8,192. Defaults to 128.
    max_features
        The largest number of features. None is the paper's unbounded machine. At the bound, steps update old blocks.
        Defaults to 2,048.

    Examples
    --------
    >>> from streamkernel import GaussianProcessRegressor
    >>> from streamkernel.gaussian_process import TestPointFunctions
    >>> variance = TestPointFunctions([{"a": 5}, {"a": 50}], batch_size=16, max_features=128)
    >>> model = GaussianProcessRegressor(variance=variance, n_features=16, seed=1)
    >>> for i in range(400):
    ...     model.learn_one({"a": i % 10}, float(i % 10))
    >>> near, far = (model.predict_one({"a": a}, with_dist=True).sigma for a in (5, 50))
    >>> near < far
    True

    References
    ----------
    [^1]: Dai et al., "Scalable kernel methods via doubly stochastic gradients", 2014, section 4.

    """

    points: Sequence[Mapping[Any, Any]]
    #: No test case of pytest's.
    __test__ = False

    def __init__(
        self,
        points: Sequence[Mapping[Any, Any]],
        batch_size: int = 64,
        block_size: int = 128,
        max_features: int | None = 2048,
        sample_size: int | None = None,
    ) -> None:
        keep_arguments(self, locals())
        self._check()
        usable = isinstance(points, list | tuple) and all(isinstance(point, Mapping) for point in points)
        if not usable or not 0 < len(points) <= MOST_POINTS:
            raise ValueError(
                f"points must be a list of 1 to {MOST_POINTS} dicts of inputs by name, got {_shortened(points)}"
            )
        self._check_points(None)

    def _check_points(self, domain: Domain | None) -> None:
        try:
            Inputs(1, False, domain).check(self.points)
        except ValueError as error:
            raise ValueError(f"points must be records: {error}") from error

    def functions(self, kernel: Kernel, rho: float) -> VarianceFunctions:
        self._check_points(kernel.domain)
        return _PointFunctions(self.points, kernel, rho, *self._sizes)

    @classmethod
    def _unit_test_params(cls) -> Any:
        yield {"points": [{"x": 0.0}]}


class _Operator(VarianceFunctions):
    """theta_ij as ridge regression: of the first stream's features on those of the second."""

    def set_seed(self, seed: int) -> None:
        super().set_seed(seed)
        self._left = self._drawn_by(int(mix64(np.uint64(seed ^ 0x1EF7))))

    @property
    def _n_outputs(self) -> int:
        return self.n_blocks * self._expansion.width

    def _targets(self, block: int, X: Array, inputs: Inputs, bandwidth: float) -> Array:
        width, keys = self._expansion.width, inputs.columns.keys[: X.shape[1]]
        if block < self.n_blocks:
            return self._left_features(X, keys, bandwidth) / self.n_blocks
        # While it grows, k(x, .) is what the newest block alone makes of it.
        targets = np.zeros((len(X), (block + 1) * width))
        targets[:, block * width :] = self._features(self._left, block, X, keys, bandwidth)
        return targets

    def _explained(self, rows: Rows, X: Array, inputs: Inputs, bandwidth: float) -> Array:
        keys = keys_of(rows, inputs)
        return row_products(self._left_features(X, keys, bandwidth), self._scores(X, keys, bandwidth))

    def _left_features(self, X: Array, keys: Array, bandwidth: float) -> Array:
        parts = [self._features(self._left, block, X, keys, bandwidth) for block in range(self.n_blocks)]
        return np.concatenate(parts, axis=1)


class _PointFunctions(VarianceFunctions):
    """f_i as kernel ridge regression: of the kernel's values at the points."""

    def __init__(self, points: Sequence[Mapping[Any, Any]], *rest: Any) -> None:
        self._points = [dict(point) for point in points]
        # A number of inputs, and the points that have this number.
        self._known: tuple[int, dict[bytes, int]] = -1, {}
        super().__init__(*rest)

    def forget(self) -> None:
        super().forget()
        # The points as they were scaled at the last step.
        self._placed = np.zeros((len(self._points), 0))
        self._factor: Array | None = None

    def state(self, n_inputs: int) -> State:
        missing = n_inputs - self._placed.shape[1]
        return {**super().state(n_inputs), "variance_points": np.pad(self._placed, ((0, 0), (0, missing)))}

    def load_state(self, state: State, n_inputs: int) -> None:
        super().load_state(state, n_inputs)
        checked(state, {"variance_points": all_finite})
        self._placed = array(state, "variance_points", np.float64, len(self._points), n_inputs)

    @property
    def _n_outputs(self) -> int:
        return len(self._points) if self.n_blocks else 0

    def _targets(self, block: int, X: Array, inputs: Inputs, bandwidth: float) -> Array:  # noqa: ARG002 - as the others
        rows = inputs.encode(self._points, [False] * len(self._points))
        scaled = inputs.scaler.scale(rows, np.zeros(len(self._points), np.bool_), DTYPE)
        self._placed = np.ascontiguousarray(scaled[:, : X.shape[1]])
        self._factor = None
        return kernel_matrix(self.kernel, X, self._placed, bandwidth) / self.kappa

    def _explained(self, rows: Rows, X: Array, inputs: Inputs, bandwidth: float) -> Array:
        scores = self._scores(X, keys_of(rows, inputs), bandwidth)
        places = self._places(rows, inputs)
        out = np.empty(len(X))
        for r, place in enumerate(places):
            own = scores[r : r + 1]
            at = own[0, place] if place >= 0 else row_products(self._weights(X[r : r + 1], bandwidth), own)[0]
            out[r] = at
        return out

    def _places(self, rows: Rows, inputs: Inputs) -> list[int]:
        """Which of the points each record is, by the inputs known when it came; -1 for none."""
        brings_more = np.asarray(is_met(rows.extras).any(axis=1)).tolist()
        places = []
        for row, n_known, more in zip(rows.values, rows.n_known.tolist(), brings_more, strict=True):
            places.append(-1 if more else self._place_of(n_known, inputs).get(_bytes(row[:n_known]), -1))
        return places

    def _place_of(self, n_known: int, inputs: Inputs) -> dict[bytes, int]:
        """The points' numbers by the bytes of their first inputs."""
        if self._known[0] != n_known:
            raw = inputs.encode(self._points, [False] * len(self._points)).values[:, :n_known]
            self._known = n_known, {_bytes(row): i for i, row in reversed([*enumerate(raw)])}
        return self._known[1]

    def _weights(self, x: Array, bandwidth: float) -> Array:
        """By which the points interpolate k(x, .), shape (1, m)."""
        if self._factor is None:
            placed = occupied(self._placed)
            self._factor = kernel_matrix(self.kernel, placed, placed, bandwidth) / self.kappa
            self._factor[np.diag_indices(len(placed))] += _JITTER
            factorize(self._factor)
        points = np.pad(self._placed, ((0, 0), (0, x.shape[1] - self._placed.shape[1])))
        both = occupied(np.concatenate([x, points]))
        weights = np.ascontiguousarray(kernel_matrix(self.kernel, both[:1], both[1:], bandwidth) / self.kappa)
        solve(self._factor, weights)
        return weights


def _bytes(row: Array) -> bytes:
    """The bytes of encoded values, the same for all NaN and for both zeros."""
    return np.where(np.isnan(row), np.nan, row + 0.0).tobytes()


def _shortened(value: object) -> str:
    return f"{len(value)} points" if isinstance(value, list | tuple) and len(value) > 3 else excerpt(value)
