"""The refit of a growing machine: the coefficients of its blocks, solved on the last records from their last values."""

import math
import time
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from river.optim.losses import Squared

from streamkernel.fields import state_mismatch, whole
from streamkernel.finite import NotFiniteError
from streamkernel.growth.machine import Machine
from streamkernel.kernels import Kernel
from streamkernel.losses import Log, Softmax, SquaredHinge, curvature, is_smooth
from streamkernel.records.classes import Classes
from streamkernel.records.targets import Encoded, Numbers, Targets
from streamkernel.state import Array, State
from streamkernel.window.exact import Exact, RowParts, minimize
from streamkernel.window.last_records import LastRecords
from streamkernel.window.linear_model import LinearSolver
from streamkernel.window.s3gd import S3GD

__all__ = ["LastRefit", "Refit", "default_solver", "require_solvable"]

#: Columns of features past which normal equations are not the default: their time grows with the square.
_MOST_EXACT = 2048
#: Rows whose features are computed at a time.
_AT_ONCE = 256
#: The losses of machines -> those of the solvers.
_SCALAR_LOSSES: dict[type, str] = {Squared: "squared", Log: "log", SquaredHinge: "squared_hinge", Softmax: "log"}


class LastRefit(NamedTuple):
    """What came of a refit.

    Attributes
    ----------
    n_records
        Records that the coefficients were solved on.
    seconds
        How long it took.
    loss
        The mean of the model's loss over these records with the new coefficients.

    """

    n_records: int
    seconds: float
    loss: float


class Refit:
    """The window of a growing machine's last records, on which its coefficients are solved at regular intervals.

    The features of the records kept are computed again, with inputs and targets scaled as of now, and divided by the
    root of the number of blocks, so that their squares add up to k(x, x): the solver's `l2` is then the weight of the
    squared norm of f in the kernel's space, as the machine's nu is.

    - machine: The machine.
    - size: The most records kept.
    - every: Labeled records from one refit to the next.
    - solver: Any of the window solvers; its loss is the machine's.
    - max_bytes: The most bytes of records kept, and of a solver's matrix: of the normal equations, or of features of as
      many of the newest records as fit.
    - records: The records kept.
    - n_refits: How often the coefficients were solved.
    - n_failures: How often they could not be solved; not part of the state, nor is what follows.
    - last: What came of the last refit; None before one.
    - seconds: Those of all refits.
    - at_work: Whether a refit is under way, for another thread that asks.
    """

    def __init__(self, machine: Machine, size: int, every: int, solver: LinearSolver, max_bytes: int) -> None:
        self.records = LastRecords(size, max_bytes)
        self.n_refits = 0
        self.machine = machine
        self._every = every
        self._solver = solver
        self._max_bytes = max_bytes
        self._n_since = 0
        self.n_failures = 0
        self.last: LastRefit | None = None
        self.seconds = 0.0
        self.at_work = False
        machine.window = self

    @property
    def room(self) -> int:
        """Records until the next refit, at least 1."""
        return max(self._every - self._n_since, 1)

    @property
    def is_due(self) -> bool:
        """Whether the coefficients are to be solved now."""
        return self._n_since >= self._every

    def append(self, values: Array, n_inputs: int, targets: Sequence[Any], y: Array, weights: Array) -> None:
        """Add records; see `RecordWindow`."""
        kept = np.array(targets, np.float64) if isinstance(self.machine.targets, Numbers) else y
        self.records.append(values, n_inputs, kept, weights)
        self._n_since += len(y)

    def refit(self) -> bool:
        """Solve the coefficients in the midst of a stream; False where there is nothing to be solved, or it cannot be.

        The records before are learned by then: what the solver refuses is warned of, and the model stays unchanged.

        NotFiniteError: The kernel's features, or the solution, are not finite. The coefficients are as they were.
        """
        try:
            return self.solve()
        except NotFiniteError:
            self._n_since = 0
            raise
        except ValueError as error:
            self._n_since = 0
            self.n_failures += 1
            text = f"the coefficients could not be solved on the last {len(self.records):,} records: {error}"
            warnings.warn(text, RuntimeWarning, stacklevel=2)
            return False

    def solve(self) -> bool:
        """Solve the coefficients; False where there is nothing to be solved yet.

        ValueError: The solver refuses the window. The coefficients are as they were.
        NotFiniteError: The kernel's features, or the solution, are not finite. The coefficients are as they were.
        """
        self.at_work, begun = True, time.perf_counter()
        try:
            found = self._solve()
        finally:
            self.at_work, seconds = False, time.perf_counter() - begun
            self.seconds += seconds
        if found is not None:
            self.last = LastRefit(found[0], seconds, found[1])
        return found is not None

    def _solve(self) -> tuple[int, float] | None:
        """Solve; give the records solved on and the mean of their losses then, None where there is nothing to solve."""
        machine = self.machine
        K = machine.targets.n_outputs
        first = self._first()
        if not machine.is_ready or not self.records.weights[first:].any() or not self._tells_apart(first):
            self._n_since = 0
            return None
        machine.expansion.widen(K)
        machine.history.widen(K)
        rows = _FeatureRows(machine, self.records, first)
        start, solver = _coefficients(machine), self._solver
        if isinstance(solver, Exact):
            *_, solution = minimize(rows, solver.l2, start, solver.tol, solver.max_passes)
        else:
            solution = self._by_solver(rows, start)
        if not np.isfinite(solution).all():
            raise NotFiniteError(
                "the coefficients solved on the window are not finite: use smaller inputs, or a larger l2 in the solver"
            )
        machine.replace_solution(_blocks(machine, solution))
        self.n_refits += 1
        self._n_since = 0
        return rows.n, rows.mean_loss(solution)

    def state(self, n_inputs: int) -> State:
        """The fields of the state."""
        return {
            "n_refits": self.n_refits,
            "n_since_refit": self._n_since,
            **self.records.state(n_inputs),
        }

    def load_state(self, state: State, n_inputs: int) -> None:
        """Take the fields that `state` gave; ValueError where they do not fit."""
        self.n_refits = whole(state, "n_refits")
        self._n_since = whole(state, "n_since_refit", self._every - 1)
        self.records.load_state(state, n_inputs)
        targets, y = self.machine.targets, self.records.targets
        n_columns = targets.n_outputs if isinstance(targets, Classes) else 2
        if not isinstance(targets, Numbers) and not np.isin(y, np.arange(n_columns)).all():
            raise state_mismatch("window_targets")

    def _first(self) -> int:
        """The first of the records that are solved on: of a solver that has all features at once, the newest."""
        if isinstance(self._solver, Exact):
            return 0
        p = self.machine.expansion.n_blocks * self.machine.expansion.width
        return max(len(self.records) - self._max_bytes // (8 * max(p, 1)), 0)

    def _tells_apart(self, first: int) -> bool:
        """Whether the records that are solved on have two labels at least, where labels are learned."""
        y = self.records.targets[first:]
        return isinstance(self.machine.targets, Numbers) or bool((y != y[0]).any())

    def _by_solver(self, rows: "_FeatureRows", start: Array) -> Array:
        machine = self.machine
        A = np.empty((rows.n, rows.p))
        for part, features in rows.parts():
            A[part] = features
        loss = _SCALAR_LOSSES[type(machine.targets.loss)]
        # Without a seed of its own, the same on any machine that is at the same place.
        seed = self._solver.seed
        if seed is None:
            seed = int(machine.expansion.seed) + self.n_refits
        # Of few records, as there are at first, all are an S3GD's anchors.
        solver = self._solver.clone({"loss": loss, "seed": seed, **self._solver.cut_to(rows.n, rows.p)})
        y = rows.y
        if isinstance(machine.targets.loss, Softmax):
            if len(start) == 2:
                # Softmax of (-u/2, u/2) is the sigmoid of u.
                u = solver.solve_outputs(A, np.where(y == 1, 1.0, -1.0)[None], rows.weights, start[1:] - start[:1])
                return np.concatenate([-u / 2, u / 2])
            targets = np.where(y == np.arange(len(start))[:, None], 1.0, -1.0)
            return solver.solve_outputs(A, targets, rows.weights, start)
        targets = y if loss == "squared" else 2 * y - 1
        return solver.solve_outputs(A, targets[None], rows.weights, start)


@dataclass(eq=False)
class _FeatureRows(RowParts):
    """The features of records kept, computed a part at a time, and the machine's loss of their scores."""

    machine: Machine
    records: LastRecords
    first: int

    def __post_init__(self) -> None:
        weights = self.records.weights[self.first :]
        self.n = len(weights)
        self.p = self.machine.expansion.n_blocks * self.machine.expansion.width
        self.weights = weights / (weights.mean() or 1.0)
        y = self.records.targets[self.first :]
        self.y = self.machine.targets.as_of_now(y) if isinstance(self.machine.targets, Numbers) else y
        loss = self.machine.targets.loss
        self.is_quadratic = isinstance(loss, Squared)
        # River's square is without the half that the solvers' has.
        self._share = 0.5 if self.is_quadratic else 1.0
        self.curvature = self._share * curvature(loss)

    def parts(self) -> Iterator[tuple[slice, Array]]:
        expansion, inputs = self.machine.expansion, self.machine.inputs
        keys, width = inputs.columns.keys, expansion.width
        share = 1 / math.sqrt(expansion.n_blocks)
        for start in range(0, self.n, _AT_ONCE):
            stop = min(start + _AT_ONCE, self.n)
            values = self.records.rows(len(inputs), self.first + start, self.first + stop)
            X = inputs.scaler.as_of_now(values).astype(expansion.dtype)
            A = np.empty((stop - start, self.p))
            for block in range(expansion.n_blocks):
                A[:, block * width : (block + 1) * width] = expansion.features(block, X, keys)
            A *= share
            if not np.isfinite(A).all():
                kernel = type(expansion.kernel).__name__
                raise NotFiniteError(
                    f"the kernel {kernel} gave features that are not finite for the records of the window: "
                    "use smaller inputs or a smaller multiple of the kernel"
                )
            yield slice(start, stop), A

    def gradient(self, part: slice, scores: Array) -> Array:
        return self._share * np.asarray(self.machine.targets.gradient(self.y[part], scores))

    def mean_loss(self, solution: Array) -> float:
        """The weighted mean of the machine's losses with coefficients of shape (K, p)."""
        before = np.full((self.n, 2), self.machine.targets.n_outputs, np.float64)
        scores = np.concatenate([A @ solution.T for _, A in self.parts()])
        losses = self.machine.targets.losses(Encoded(self.y, before), scores)
        return float(np.average(losses, weights=self.weights))


def default_solver(targets: Targets, max_features: int | None, kernel: Kernel, l2: float) -> LinearSolver:
    """The solver of a model with at most `max_features` features: normal equations, unless they would take too long."""
    p = kernel.n_parts * (max_features or 0)
    if p > _MOST_EXACT and type(targets.loss) in _SCALAR_LOSSES:
        return S3GD(l2=l2, tol=1e-3, max_passes=10)
    return Exact(l2=l2)


def require_solvable(solver: LinearSolver, targets: Targets, max_features: int | None, n_parts: int, most: int) -> None:
    """Refuse a model that a solver cannot refit.

    ValueError: The loss is not smooth, or not one of the solver's, or a matrix of that number of features is too large.
    """
    loss = targets.loss
    name = type(loss).__name__
    if not is_smooth(loss):
        raise ValueError(
            f"the loss {name} is not smooth: a window solver accepts Squared, Huber, Log, SquaredHinge and Softmax"
        )
    if not isinstance(solver, Exact) and type(loss) not in _SCALAR_LOSSES:
        raise ValueError(f"{type(solver).__name__} does not support the loss {name}: use solver=Exact()")
    if max_features is None:
        raise ValueError(
            "a window solver solves all coefficients at once: set max_features of the model, for example to 1024"
        )
    p = n_parts * max_features
    if isinstance(solver, Exact) and 8 * p**2 > most:
        fitting = math.isqrt(most // 8) // n_parts
        fewer = f"set max_features of the model to at most {fitting}, or " if fitting else ""
        raise ValueError(
            f"the normal equations of {max_features} features take {8 * p**2:,} bytes, more than max_bytes={most:,}: "
            f"{fewer}set a larger max_bytes of the WindowRefit"
        )


def _coefficients(machine: Machine) -> Array:
    """The last solution as a solver has it, float64 of shape (K, p)."""
    expansion = machine.expansion
    alpha = expansion.alpha.astype(np.float64) * (expansion.scale * math.sqrt(expansion.n_blocks))
    return np.ascontiguousarray(alpha.transpose(1, 0, 2)).reshape(expansion.n_outputs, -1)


def _blocks(machine: Machine, solution: Array) -> Array:
    """Coefficients as `Expansion.alpha` has them, of a solver's of shape (K, p)."""
    expansion = machine.expansion
    blocks = solution.reshape(expansion.n_outputs, expansion.n_blocks, expansion.width) / math.sqrt(expansion.n_blocks)
    return np.ascontiguousarray(blocks.transpose(1, 0, 2))
