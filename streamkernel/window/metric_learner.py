"""Large-margin metric learning, of one task or several, by block DSPDC (Algorithm 3 of its paper)."""

import math
import secrets
from collections.abc import Hashable, Mapping
from typing import Any, Self

import numpy as np
from river import base

from streamkernel.representation import Representable
from streamkernel.state import excerpt
from streamkernel.window.arguments import require_block_arguments, require_counts, require_numbers, require_seed
from streamkernel.window.block_solver import BlockSolver
from streamkernel.window.columns import by_name, column_names
from streamkernel.window.history import History
from streamkernel.window.linear_model import dense_rows, labels_in_order
from streamkernel.window.losses import window_loss
from streamkernel.window.matrix_problem import MatrixProblem
from streamkernel.window.psd import psd_factor
from streamkernel.window.triplet_blocks import TripletBlocks
from streamkernel.window.triplets import Triplets, find_triplets

__all__ = ["MetricLearner"]

Array = np.ndarray[Any, np.dtype[Any]]


#: Past it the eighth powers that the spectral norm of the data takes are not finite.
_LARGEST = 1e35


class MetricLearner(Representable, base.Base):
    """Large-margin nearest neighbor metric learning (LMNN), for one task or several (MT-LMNN).

    It learns a Mahalanobis metric. Records are near their neighbors with the same label, and farther from records with
    other labels, by a margin of 1. With several tasks, the metric of task t is X_0 + X_t, and all tasks share X_0:

    min over positive semi-definite X_0, X_1, ... of shared_l2/2 |X_0 - I|^2 + sum_t l2/2 |X_t|^2
    + pull times the mean of d_t(u, v)^2 over pairs + the mean of phi(d_t(u, w)^2 - d_t(u, v)^2) over triplets

    phi is the smooth hinge. A pair is a record u and one of its k nearest records v with the same label. A triplet adds
    one of the nearest records w with another label. All are within a task, by the Euclidean distance. Scale the inputs
    comparably. All records must be available at once: a file, or a window of a stream.

    Parameters
    ----------
    neighbors
        k, the number of target neighbors of a record. Defaults to 3.
    impostors
        The number of nearest records with other labels to compare with each pair. Defaults to 1, as in the paper.
    max_triplets
        The largest number of triplets. If there are more, the seed draws this number of them. Defaults to 100,000.
    pull
        The weight of the pairs' distances, above 0. If no metric separates the classes because they overlap, the best
        one is near 0 and useless. Then use a smaller weight. Defaults to 1, as in the paper.
    shared_l2
        The strength of the pull of X_0 toward the identity, above 0. Defaults to 0.01.
    l2
        The strength of the pull of each task's X_t toward 0, above 0. Defaults to 0.1.
    dual
        m, the triplets of an iteration. None (the default) is a hundredth of them, at least 1.
    primal
        q, the matrices of an iteration. None (the default) is a fifth of them, at least 1.
    scale
        Lambda, which sets the step sizes. "sampled" (the default) is a quarter of the largest squared spectral norm of
        ten draws of m triplets and q matrices. "thumb" is the paper's rule. A number above 0 sets it directly. Lambda
        doubles if the duality gap rises to twice its first value, or has no new minimum for 20 passes (then for 40, 80,
        ...).
    balance
        How to split the product of both step sizes, which Lambda gives. "theorem" follows the paper's Theorem 1. "data"
        has a larger primal step. None (the default) is "data" if the number of triplets is at most a quarter of the
        numbers in all matrices.
    tol
        The duality gap at which to stop. Defaults to 1e-4.
    max_passes
        The largest number of passes. Defaults to 100.
    seed
        The seed of the draws. None (the default) draws a new one each time.

    Attributes
    ----------
    inputs_
        The names of the inputs: the columns of a data frame, or 0, 1, ...
    metric_
        The metric, shape (d, d), symmetric and positive semi-definite. With several tasks, the shared X_0.
    metrics_
        The metric of each task by its label: X_0 + X_t, or X_0 for a single task. Empty without tasks.
    n_triplets_
        The number of triplets used.
    n_projections_
        The number of eigenvalue decompositions.
    history_
        A `History`.

    Examples
    --------
    >>> import numpy as np
    >>> from streamkernel.window import MetricLearner
    >>> rng = np.random.default_rng(1)
    >>> X = rng.normal(size=(200, 3)) * [1.0, 1.0, 3.0]
    >>> learner = MetricLearner(seed=1).fit(X, X[:, 0] > 0)
    >>> weights = np.diag(learner.metric_)
    >>> bool(weights[0] > 10 * max(weights[1:]))
    True
    >>> round(learner.distance({0: 1.0}, {0: 1.0, 2: 1.0}) / learner.distance({0: 1.0}, {}), 1)
    0.0

    References
    ----------
    [^1]: Yu, Lin and Yang, "Doubly stochastic primal-dual coordinate method for bilinear saddle-point problem", 2015,
          section 5.3 and algorithm 3.
    [^2]: Parameswaran and Weinberger, "Large margin multi-task metric learning", 2010.

    """

    def __init__(
        self,
        neighbors: int = 3,
        impostors: int = 1,
        max_triplets: int = 100_000,
        pull: float = 1.0,
        shared_l2: float = 0.01,
        l2: float = 0.1,
        dual: int | None = None,
        primal: int | None = None,
        scale: str | float = "sampled",
        balance: str | None = None,
        tol: float = 1e-4,
        max_passes: int = 100,
        seed: int | None = None,
    ) -> None:
        self.neighbors = neighbors
        self.impostors = impostors
        self.max_triplets = max_triplets
        self.pull = pull
        self.shared_l2 = shared_l2
        self.l2 = l2
        self.dual = dual
        self.primal = primal
        self.scale = scale
        self.balance = balance
        self.tol = tol
        self.max_passes = max_passes
        self.seed = seed

    def fit(self, X: Any, y: Any, tasks: Any = None) -> Self:
        """Learn a metric.

        Parameters
        ----------
        X
            Records as a data frame or an array of shape (n, d).
        y
            n labels.
        tasks
            n labels of tasks. None (the default) is one task. Records of different tasks are never compared.

        Raises
        ------
        ValueError
            An argument or the data are unusable. The learner is unchanged.

        """
        self._check()
        rows, columns = dense_rows(X), column_names(X)
        if np.abs(rows).max() > _LARGEST:
            raise ValueError(f"X has values past {_LARGEST:g}, which are too large to compare: scale its columns")
        labels, own = _labels("y", y, len(rows)), None if tasks is None else _labels("tasks", tasks, len(rows))
        names = [] if own is None else list(np.unique(own))
        seed = secrets.randbits(64) if self.seed is None else int(self.seed) % 2**64
        problem = self.problem(rows, labels, own, np.random.default_rng(seed))
        data = problem.data
        dual = self.dual or max(data.n // 100, 1)
        primal = self.primal or max(data.p // 5, 1)
        for name, value, most, what in (("dual", dual, data.n, "triplets"), ("primal", primal, data.p, "matrices")):
            if value > most:
                raise ValueError(f"{name} must be at most {most}, the number of {what}, got {value}")
        solver = BlockSolver(dual, primal, self.scale, self.balance, float(self.tol), self.max_passes)
        start = data.pack(np.concatenate([np.eye(data.d)[None], np.zeros((data.p - 1, data.d, data.d))]))
        solution = solver.solve(problem, seed, start)
        matrices = data.unpack(solution.X)
        self.inputs_: tuple[Hashable, ...] = columns or tuple(range(data.d))
        self._columns = columns
        self.metric_: Array = matrices[0]
        several = data.p > 1
        self.metrics_: dict[Any, Array] = {
            name: matrices[0] + matrices[t] if several else matrices[0] for t, name in enumerate(names, start=1)
        }
        self._factors = {None: psd_factor(self.metric_), **{t: psd_factor(M) for t, M in self.metrics_.items()}}
        self.n_triplets_: int = data.n
        self.n_projections_: int = solution.n_projections
        self.history_: History = solution.history
        return self

    def problem(self, X: Array, y: Array, tasks: Array | None, rng: np.random.Generator) -> MatrixProblem:
        """Return the problem (33) of records, with X_0 and the tasks' matrices as blocks.

        Raises
        ------
        ValueError
            There is no triplet.

        """
        names = np.zeros(1) if tasks is None else np.unique(tasks)
        found = []
        for number, name in enumerate(names):
            rows = np.arange(len(X)) if tasks is None else np.flatnonzero(tasks == name)
            pairs, triplets = find_triplets(X[rows], y[rows], self.neighbors, self.impostors)
            found.append((number, Triplets(rows[pairs], rows[triplets])))
        n_triplets = sum(len(of_task.triplets) for _, of_task in found)
        if not n_triplets:
            none = "y has no" if tasks is None else "no task has a"
            raise ValueError(f"{none} label with two records and another label: there is nothing to compare")
        several = len(names) > 1
        numbers = np.concatenate([np.full(len(one.triplets), number + several) for number, one in found])
        triplets = np.concatenate([one.triplets for _, one in found])
        # In a random order: those of one iteration are neighbors.
        kept = rng.permutation(n_triplets)[: self.max_triplets]
        u, v, w = triplets[kept].T
        data = TripletBlocks(X[u] - X[w], X[u] - X[v], numbers[kept], len(names) if several else 0)
        linear = np.zeros((data.p, data.d, data.d))
        n_pairs = sum(len(one.pairs) for _, one in found)
        for number, one in found:
            apart = X[one.pairs[:, 0]] - X[one.pairs[:, 1]]
            C = self.pull / n_pairs * (apart.T @ apart)
            linear[0] -= C
            if several:
                linear[number + 1] -= C
        linear[0] += self.shared_l2 * np.eye(data.d)
        ones = np.ones(data.n)
        l2 = np.full(data.p, float(self.l2))
        l2[0] = self.shared_l2
        constant = float(self.shared_l2) * data.d / 2
        return MatrixProblem(data, ones, ones, window_loss("smooth_hinge"), l2, data.pack(linear), constant)

    def transform(self, X: Any, task: Any = None) -> Array:
        """Map records (n, d) to vectors (n, rank) with the metric's distances, for a task or the shared metric.

        After a fit on a data frame, columns are found by name.
        """
        factor = self._factor(task)
        rows = dense_rows(by_name(X, self._columns))
        if rows.shape[1] != len(self.inputs_):
            raise ValueError(f"X must have {len(self.inputs_)} columns, as fitted, got shape {rows.shape}")
        return np.asarray(rows @ factor.T)

    def distance(self, a: Any, b: Any, task: Any = None) -> float:
        """Return the distance of two records, for `dist_func` of River's nearest neighbors.

        An input is 0 if it is missing, None, NaN or a string. An input that the metric does not know changes nothing.

        Parameters
        ----------
        a, b
            Records with the names of `inputs_`, or vectors of shape (d,).
        task
            The task to use. None (the default) is the only one, or the metric that all tasks share.

        Raises
        ------
        ValueError
            A record has an infinite number, or is neither a mapping nor a vector of d numbers.

        """
        factor = self._factor(task)
        one, other = self._vector(a), self._vector(b)
        with np.errstate(over="ignore", invalid="ignore"):
            apart = factor @ (one - other)
            found = math.sqrt(apart.dot(apart))
        if math.isfinite(found):
            return found
        one, other = self._observed(one), self._observed(other)
        # Squares may be past the largest float: those of smaller numbers, times what they were divided by.
        size = float(max(np.abs(one).max(), np.abs(other).max(), 1.0))
        return float(np.linalg.norm(factor @ (one / size - other / size))) * size

    def _factor(self, task: Any) -> Array:
        if "_factors" not in vars(self):
            raise ValueError("this MetricLearner has no metric yet: call fit first")
        factor = self._factors.get(task) if isinstance(task, Hashable) else None
        if factor is None:
            raise ValueError(f"task must be None or one of those fitted, got {excerpt(task)}")
        return factor

    def _vector(self, record: Any) -> Array:
        """A record's numbers in the order of `inputs_`, NaN where it has None or a string instead."""
        values = [record.get(name, 0.0) for name in self.inputs_] if isinstance(record, Mapping) else record
        try:
            vector = np.array(values)
            if vector.dtype.kind not in "fiub":
                vector = np.array([math.nan if isinstance(value, str) else value for value in values], np.float64)
        except (TypeError, ValueError, OverflowError):
            vector = np.empty(0)
        if vector.shape != (len(self.inputs_),):
            raise ValueError(
                f"a record must have numbers by the names of inputs_, or be {len(self.inputs_)} numbers, "
                f"got {excerpt(record)}"
            )
        return vector.astype(np.float64, copy=False)

    def _observed(self, vector: Array) -> Array:
        """A vector with 0 in place of NaN; ValueError where a number is infinite."""
        infinite = np.isinf(vector)
        if infinite.any():
            name = excerpt(self.inputs_[int(infinite.argmax())])
            raise ValueError(f"input {name} is infinite: use a finite number, or None if it was not observed")
        return np.where(np.isnan(vector), 0.0, vector)

    def _check(self) -> None:
        require_block_arguments(self)
        require_counts(self, "neighbors", "impostors", "max_triplets")
        require_numbers(self, "pull", "shared_l2", "l2")
        require_seed(self)


def _labels(name: str, values: Any, n: int) -> Array:
    labels = np.asarray(values)
    if labels.shape != (n,):
        raise ValueError(f"{name} must have a label for each of the {n} rows of X, got shape {labels.shape}")
    labels_in_order(name, labels)
    return labels
