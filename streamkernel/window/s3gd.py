"""S3GD: stochastic gradient steps that the gradients at anchors correct. Anchors are rows that represent all."""

import time
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from streamkernel.arguments import keep_arguments, require_positive, require_whole
from streamkernel.compute.semi_stochastic import (
    add_to_anchors,
    anchor_gradient,
    anchor_weights,
    claim_rows,
    move_centers,
    nearest,
    semi_stochastic_rounds,
)
from streamkernel.compute.window_losses import LOGISTIC, SQUARED
from streamkernel.state import Array
from streamkernel.window.descent import Descent
from streamkernel.window.linear_model import History, LinearProblem
from streamkernel.window.svrg import StochasticSolver, squared_norms

__all__ = ["S3GD", "AnchorGraph", "AnchorModel", "choose_anchors"]

# Centers are those of a sample, which costs less than the graph does.
_ROWS_AN_ANCHOR = 20
_LLOYD_STEPS = 5


def choose_anchors(X: Array, m: int, seed: int) -> Array:
    """Rows of X, as m different row numbers: those nearest to the centers of k-means on a sample.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.repeat(np.eye(3), 5, axis=0)
    >>> len(set(choose_anchors(X, 3, seed=1)))
    3

    """
    n = len(X)
    if m == n:
        return np.arange(n)
    rng = np.random.default_rng(seed)
    among = np.sort(rng.choice(n, min(n, _ROWS_AN_ANCHOR * m), replace=False))
    sample = X[among]
    centers = sample[np.sort(rng.choice(len(among), m, replace=False))]
    places, distances = np.empty((len(among), 1), np.int64), np.empty((len(among), 1))
    for _ in range(_LLOYD_STEPS):
        nearest(sample, centers, places, distances)
        move_centers(sample, places, centers)
    own = np.empty(m, np.int64)
    claim_rows(sample, centers, own)
    return np.sort(among[own])


class AnchorGraph:
    """Which anchors are near each row, and with what shares: the same for all targets.

    - X: Rows of shape (n, p).
    - m: How many rows become anchors.
    - k: With how many anchors a row is connected.
    - scale: What the rows are to be multiplied by where distances are measured.
    - seed: Of the sample in which anchors are looked for.
    - anchors: Shape (m, p).
    - places, shares: Each row's nearest anchors, and their shares, of sum 1: shape (n, k).
    """

    def __init__(self, X: Array, m: int, k: int, scale: float, seed: int) -> None:
        self.anchors = X[choose_anchors(X, m, seed)]
        self.places = np.empty((len(X), k), np.int64)
        distances = np.empty((len(X), k))
        nearest(X, self.anchors, self.places, distances)
        self.shares = np.empty((len(X), k))
        anchor_weights(distances, scale, self.shares)


class AnchorModel:
    """What S3GD approximates gradients by: the anchors' derivatives, propagated to the rows.

    A derivative that depends on the label by a constant only, psi'(z, y) = psi'(z, y0) + c(y), is taken once an anchor:
    squared loss, y0 = 0 and c = -y; logistic loss, y0 = 1 and c(-1) = 1. Of the other losses each anchor has one
    derivative for each label.

    - graph: The anchors of the rows.
    - problem: The rows, their targets and weights, and the loss.
    - rows: Places, shares and offsets of the rows, as compiled code takes them.
    - sums: Anchors, labels, sums and offset, as compiled code takes them.
    """

    def __init__(self, graph: AnchorGraph, problem: LinearProblem) -> None:
        X, y, loss = problem.X, problem.y, problem.loss
        self.loss, weights = (loss.kind, loss.beta), problem.weights
        n, m = len(X), len(graph.anchors)
        offsets, places = np.zeros(n), graph.places
        if loss.kind == SQUARED:
            labels, offsets = np.zeros(1), -y
        elif loss.kind == LOGISTIC and not loss.beta:
            labels, offsets = np.ones(1), np.where(y < 0, 1.0, 0.0)
        else:
            labels = np.array([1.0, -1.0])
            places = np.where(y[:, None] < 0, places + m, places)
        sums = np.zeros((len(labels) * m, X.shape[1]))
        add_to_anchors(X, weights / n, places, graph.shares, sums)
        constant = np.zeros((1, X.shape[1]))
        add_to_anchors(X, weights * offsets / n, np.zeros((n, 1), np.int64), np.ones((n, 1)), constant)
        self.rows = places, graph.shares, offsets
        self.sums = graph.anchors, labels, sums, constant[0]

    def gradient(self, w: Array, rows: slice = slice(None)) -> tuple[Array, Array]:
        """What the anchors tell at w: the derivatives of some rows' losses, and the full gradient.

        - w: Coefficients of shape (p,).
        - rows: Which rows.
        """
        anchors, labels, sums, offset = self.sums
        d, H = np.empty(len(sums)), np.empty_like(w)
        anchor_gradient(*self.loss, anchors, labels, sums, offset, w, d, H)
        places, shares, offsets = (part[rows] for part in self.rows)
        return offsets + (shares * d[places]).sum(axis=1), H


# Passes of S3GD's steps between two full gradients, which take about as long as one: fewest and most.
_SEGMENT = 0.25, 0.5
# After this many times 1 / (step l2) steps the rest of the start is small.
_TRANSIENT = 1.5
# Rows from which the variance of a step is estimated.
_SAMPLE = 2000
# How many times the objective must have grown for steps to be too long.
_DIVERGES = 2.0


class S3GD(StochasticSolver):
    """A linear model solved by stratified semi-stochastic gradient descent (S3GD) [1]_, then by SVRG.

    It minimizes (1/n) sum phi(x_i . w, y_i) + l2/2 |w|^2 + l1 |w|_1. Some rows, near the centers of k-means, are
    anchors. The derivative of a row's loss is close to the mean of its nearest anchors' derivatives. So the anchors'
    values give an approximate full gradient at low cost, and it corrects the gradients of mini-batches. The steps
    converge only to a ball around the minimum. When they stop improving, SVRG continues with exact full gradients.

    Building the graph of anchors costs many passes, once for all classes: `preparation_seconds_`.

    Parameters
    ----------
    loss, l2, l1, batch, step, tol, class_weight, beta, seed
        As in `SVRG`. If the default step is too long and `switch` is True, the solver shortens it.
    anchors
        The number of anchors, at most the number of rows.
    neighbors
        The number of anchors that approximate a row's derivative.
    inner
        The number of steps between two gradients at the anchors.
    max_passes
        The largest number of passes over the rows.
    switch
        Whether to continue with SVRG when the steps stop improving. That is when the full gradient, computed every
        quarter to half a pass, is smaller than the deviation of a step's gradient. If False, the solver stops in its
        ball.
    record_every
        The passes between two points of the history during S3GD's steps. None is a quarter.

    Attributes
    ----------
    preparation_seconds_
        The seconds for finding the anchors, which the history does not include.
    switched_
        The passes after which SVRG continued; NaN if it did not. For K > 2 classes, K of them.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(1)
    >>> X = rng.normal(size=(500, 3))
    >>> y = X @ [1.0, -2.0, 0.5] > 0
    >>> model = S3GD(l2=1e-2, anchors=20, seed=1).fit(X, y)
    >>> bool(model.history_.gap[-1] <= 1e-6)
    True
    >>> float((model.predict(X) == y).mean()) > 0.98
    True

    References
    ----------
    .. [1] Mu, Liu and Fan, "Stochastic Gradient Made Stable: A Manifold Propagation Approach for Large-Scale
       Optimization", IEEE Transactions on Knowledge and Data Engineering 29(2), 2017.

    """

    anchors: int
    neighbors: int
    inner: int
    switch: bool
    record_every: float | None
    preparation_seconds_: float
    switched_: float | tuple[float, ...]
    _prepared: Any

    def __init__(
        self,
        loss: str = "log",
        l2: float = 1e-3,
        l1: float = 0.0,
        anchors: int = 100,
        neighbors: int = 5,
        inner: int = 20,
        batch: int = 10,
        step: float | None = None,
        max_passes: float = 20,
        tol: float = 1e-6,
        switch: bool = True,
        class_weight: str | None = None,
        beta: float = 10.0,
        record_every: float | None = None,
        seed: int | None = None,
    ) -> None:
        keep_arguments(self, locals())

    def fit(self, X: Any, y: Any, sample_weight: Any = None, coef_init: Any = None) -> Self:
        """Solve, as in `LinearSolver.fit`."""
        # Only here, so that a solver holds nothing of the rows afterwards.
        self._prepared = None
        try:
            super().fit(X, y, sample_weight, coef_init)
            self.preparation_seconds_ = self._prepared.seconds
            switched = self._prepared.switched
            self.switched_ = switched[0] if len(switched) == 1 else tuple(switched)
        finally:
            del self._prepared
        return self

    def cut_to(self, n: int, p: int) -> dict[str, Any]:  # noqa: ARG002 - columns do not matter
        """Limit anchors and neighbors to n rows."""
        return {"anchors": min(self.anchors, n), "neighbors": min(self.neighbors, n)}

    def _checked(self) -> Any:
        for name in ("anchors", "neighbors", "inner"):
            require_whole(name, getattr(self, name))
        if self.neighbors > self.anchors:
            raise ValueError(f"neighbors must be at most anchors={self.anchors}, got {self.neighbors}")
        if self.record_every is not None:
            require_positive("record_every", self.record_every)
        return super()._checked()

    def _prepare(self, X: Array, seed: int) -> Any:
        if self.anchors > len(X):
            raise ValueError(
                f"anchors must be at most the number of rows, {len(X)}, got {self.anchors}: use fewer anchors"
            )
        prepared = _Prepared(X, self.anchors, self.neighbors, seed)
        if "_prepared" in vars(self):
            self._prepared = prepared
        return prepared

    def _solve(self, problem: LinearProblem, start: Array, seed: int, shared: Any) -> tuple[Array, History]:
        run = self._descent(problem, start, shared.squares, seed)
        model = shared.model(problem)
        stage = _Anchored(run, model, shared.squares, run.within(self.max_passes, self.inner))
        every = _SEGMENT[0] if self.record_every is None else self.record_every
        run.record()
        if not self.switch:
            while run.passes < self.max_passes and not run.gap <= self.tol:
                stage.advance(stage.rounds(every))
                run.look(counted=False)
            shared.switched.append(np.nan)
            return run.w, run.history
        gains = True
        if start.any():
            run.look()
            gains = stage.gains()
        while gains and run.passes < self.max_passes:
            w, before = run.w.copy(), run.rows[-1][2]
            try:
                stage.segment(every)
                run.look()
                diverges = run.rows[-1][2] > _DIVERGES * before
            except ValueError:
                diverges = True
            if diverges:
                run.retreat(w)
            else:
                gains = stage.gains()
        if gains:  # out of passes
            run.look(counted=False)
        shared.switched.append(run.passes)
        run.finish(self.tol, self.max_passes, None)
        return run.w, run.history


class _Prepared:
    """What all outputs of a fit share, and what it took."""

    def __init__(self, X: Array, anchors: int, neighbors: int, seed: int) -> None:
        few = X[:2]
        AnchorGraph(few, 1, 1, 1.0, seed)  # compiled before time is measured
        begin = time.perf_counter()
        self.squares = squared_norms(X)
        scale = 1.0 / (float(np.sqrt(self.squares.mean())) or 1.0)
        self.graph = AnchorGraph(X, anchors, neighbors, scale, seed)
        self.seconds = time.perf_counter() - begin
        self.switched: list[float] = []

    def model(self, problem: LinearProblem) -> AnchorModel:
        begin = time.perf_counter()
        model = AnchorModel(self.graph, problem)
        self.seconds += time.perf_counter() - begin
        return model


@dataclass(eq=False)
class _Anchored:
    """A run's steps corrected by the anchors."""

    run: Descent
    model: AnchorModel
    squares: Array
    inner: int

    def __post_init__(self) -> None:
        self.total = np.zeros_like(self.run.w)
        self.each = (self.inner * self.run.batch + len(self.model.sums[0])) / len(self.run.problem.X)
        self._call(0)

    def _call(self, rounds: int) -> None:
        run, model = self.run, self.model
        problem = (*run.loss, *run.data, model.rows, model.sums)
        semi_stochastic_rounds(*problem, run.w, self.total, rounds, self.inner, run.batch, run.penalty, run.state)

    def rounds(self, passes: float) -> int:
        """How many rounds read `passes` times n records; at least one."""
        return max(int(passes / self.each), 1)

    def advance(self, rounds: int) -> None:
        """Take `rounds` rounds of steps."""
        self.run.work(rounds * self.each, self._call, rounds)

    def segment(self, every: float) -> None:
        """Take steps for a while, recorded so often, and then the mean of the coefficients of the second half."""
        run = self.run
        # Without l2 nothing says how soon the start is forgotten: `shrinks` is 0.
        shrinks = len(run.problem.X) * run.step * run.problem.regularizer.l2
        transient = _TRANSIENT * run.batch / shrinks if shrinks else np.inf
        half, most = self.rounds(0.5 * min(max(transient, _SEGMENT[0]), _SEGMENT[1])), self.rounds(every)
        for _ in range(2):
            self.total[:], left = 0.0, half
            while left:
                self.advance(min(left, most))
                left -= min(left, most)
                run.record()
        run.w = self.total / half

    def gains(self) -> bool:
        """Whether a step from where the last `look` was is longer than its deviation, estimated from some rows."""
        run = self.run
        some = slice(None, None, max(len(self.squares) // _SAMPLE, 1))
        known, H = self.model.gradient(run.w, some)
        second = float(
            (np.square(run.derivatives[some] - run.problem.weights[some] * known) * self.squares[some]).mean()
        )
        variance = (second - float(np.square(run.gradient - H).sum())) / run.batch
        moved = run.w - run.problem.regularizer.prox(run.w - run.step * run.gradient, run.step)
        return bool(np.square(moved / run.step).sum() > variance)
