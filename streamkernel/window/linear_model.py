"""The common part of the window solvers: checks of arguments and data, one-against-rest classes, predictions."""

import abc
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from river import base
from scipy import sparse

from streamkernel.arguments import Representable, new_seed, require_from_zero, require_positive, require_seed
from streamkernel.state import Array, excerpt
from streamkernel.window.losses import ElasticNet, WindowLoss, window_loss


class History(NamedTuple):
    """The objective and duality gap of a solver during its run.

    Attributes
    ----------
    passes
        Passes over the data so far, of shape (steps,). The first is 0, at the start.
    seconds
        Seconds of work so far, without the time for this history.
    objective
        The objective there.
    gap
        The duality gap there, an upper bound on the distance to the optimum. NaN for a solver without one.

    """

    passes: Array
    seconds: Array
    objective: Array
    gap: Array

    @classmethod
    def of(cls, rows: list[tuple[float, float, float, float]]) -> "History":
        """One of rows (passes, seconds, objective, gap)."""
        return cls(*np.array(rows, np.float64).reshape(-1, 4).T.copy())


def column_names(X: Any) -> tuple[Hashable, ...] | None:
    """The names of a data frame's columns (pandas, polars, pyarrow); None of anything else.

    Examples
    --------
    >>> import pandas as pd
    >>> column_names(pd.DataFrame({"a": [1.0], "b": [2.0]})), column_names([[1.0, 2.0]])
    (('a', 'b'), None)

    """
    # Attributes of the type: those of an instance of pandas may be columns. The `columns` of pyarrow are not the names.
    for attribute in ("column_names", "columns"):
        if hasattr(type(X), attribute):
            return tuple(getattr(X, attribute))
    return None


def by_name(X: Any, names: Sequence[Hashable] | None) -> Any:
    """A data frame with the columns of these names, in their order; anything else, and without names, as it is.

    ValueError: A data frame lacks one of them.
    """
    given = column_names(X)
    if names is None or given is None or given == tuple(names):
        return X
    lacking = next((name for name in names if name not in given), None)
    if lacking is not None:
        raise ValueError(f"X lacks the column {excerpt(lacking)}, which the fitted data had")
    return X.select(list(names)) if hasattr(type(X), "select") else X[list(names)]


@dataclass(eq=False)
class LinearProblem:
    """One output's problem: min_x (1/n) sum_i w_i phi_i(a_i . x) + l2/2 |x|^2 + l1 |x|_1.

    - X: The rows a_i, float64 of shape (n, p).
    - y: Numbers, or labels of -1 and 1, float64 of shape (n,).
    - weights: w_i, float64 of shape (n,), from 0 up, of mean 1.
    - loss, regularizer: phi and the elastic net.
    """

    X: Any
    y: Array
    weights: Array
    loss: WindowLoss
    regularizer: ElasticNet


class LinearSolver(Representable, base.Base, abc.ABC):
    """The base class of the solvers: a linear model without intercept, on data available at once.

    Attributes
    ----------
    coef_
        The coefficients, of shape (p,). For K > 2 classes, one against rest, (K, p).
    classes_
        The labels in ascending order, for a loss of labels.
    n_iter_
        The largest number of passes over the data for any output.
    history_
        A `History`. For K > 2 classes, a tuple with one for each.

    """

    loss: str
    l2: float
    l1: float
    seed: int | None
    coef_: Array
    classes_: Array
    n_iter_: int
    history_: History | tuple[History, ...]
    losses: ClassVar[tuple[str, ...] | None] = None
    #: Whether l2 may be 0 with l1 above 0.
    allows_l1_alone: ClassVar[bool] = False

    def fit(self, X: Any, y: Any, sample_weight: Any = None, coef_init: Any = None) -> Self:
        """Solve.

        Parameters
        ----------
        X
            Rows of shape (n, p).
        y
            n numbers, or n labels of at least two classes for a loss of labels.
        sample_weight
            n weights from 0 up. None means all 1. Only their ratios matter.
        coef_init
            The start, of the shape of `coef_`. None means 0.

        Raises
        ------
        ValueError
            An argument or the data are unusable. The solver is unchanged.

        """
        loss, regularizer = self._checked()
        rows, names = self._rows(X), column_names(X)
        n, p = rows.shape
        targets = self._targets(y, n, loss)
        weights = _weights(sample_weight, n)
        starts = _starts(coef_init, len(targets), p)
        coefs, histories = self._solve_all(
            [LinearProblem(rows, y, weights, loss, regularizer) for y in targets], starts
        )
        self.coef_ = coefs[0] if len(coefs) == 1 else coefs
        self._names = names
        self.history_ = histories[0] if len(coefs) == 1 else tuple(histories)
        self.n_iter_ = int(np.ceil(max(history.passes[-1] for history in histories)))
        if loss.of_labels:
            self.classes_ = np.unique(y)
        return self

    def solve_outputs(self, X: Array, targets: Sequence[Array] | Array, weights: Array, starts: Array) -> Array:
        """Return the coefficients of several outputs of the same rows, float64 of shape (K, p).

        - X: Rows, contiguous float64 of shape (n, p), finite.
        - targets: For each output, numbers or labels of -1 and 1, which may all be the same; float64 of shape (n,).
        - weights: Weights from 0 up of mean 1, shape (n,).
        - starts: The starts, shape (K, p).

        ValueError: An argument of the solver or the data are unusable.
        """
        loss, regularizer = self._checked()
        rows = self._rows(X)
        return self._solve_all([LinearProblem(rows, y, weights, loss, regularizer) for y in targets], starts)[0]

    def _solve_all(self, problems: Sequence[LinearProblem], starts: Array) -> tuple[Array, list[History]]:
        seed = new_seed(self.seed)
        shared = self._prepare(problems[0].X, seed)
        solved = [self._solve(one, start, seed, shared) for one, start in zip(problems, starts, strict=True)]
        coefs = np.array([coef for coef, _ in solved])
        if not np.isfinite(coefs).all():
            raise ValueError("the fitted coefficients are not finite: use a larger l2, or scale X and y")
        return coefs, [history for _, history in solved]

    def decision_function(self, X: Any) -> Array:
        """Return the scores a . x of rows: shape (n,), or (n, K) for K > 2 classes.

        After a fit on a data frame, columns are found by name.
        """
        if not hasattr(self, "coef_"):
            raise ValueError(f"this {type(self).__name__} has no coefficients yet: call fit first")
        rows = self._rows(by_name(X, self._names))
        if rows.shape[1] != self.coef_.shape[-1]:
            raise ValueError(f"X must have {self.coef_.shape[-1]} columns, as fitted, got shape {rows.shape}")
        return np.asarray(rows @ self.coef_.T)

    def predict(self, X: Any) -> Array:
        """Predict numbers or, for a loss of labels, the label with the highest score."""
        scores = self.decision_function(X)
        if not self._window_loss().of_labels:
            return scores
        columns = scores > 0 if scores.ndim == 1 else scores.argmax(axis=1)
        return np.asarray(self.classes_[np.asarray(columns, np.intp)])

    def cut_to(self, n: int, p: int) -> dict[str, Any]:  # noqa: ARG002 - of use where it is overridden
        """Return the arguments that are too large for n rows or p columns, each at its limit."""
        return {}

    def _checked(self) -> tuple[WindowLoss, ElasticNet]:
        """The loss and the regularizer of the arguments, all of which are checked; ValueError."""
        if self.losses is not None and self.loss not in self.losses:
            raise ValueError(f"loss must be one of {', '.join(self.losses)}, got {excerpt(self.loss)}")
        require_seed(self.seed)
        (require_from_zero if self.allows_l1_alone else require_positive)("l2", self.l2)
        require_from_zero("l1", self.l1)
        if not (self.l2 or self.l1):
            raise ValueError("l2 and l1 are both 0: set one of them above 0")
        return self._window_loss(), ElasticNet(float(self.l2), float(self.l1))

    def _window_loss(self) -> WindowLoss:
        return window_loss(self.loss)

    def _rows(self, X: Any) -> Any:
        """The rows as the solver takes them; ValueError."""
        return dense_rows(X)

    def _targets(self, y: Any, n: int, loss: WindowLoss) -> list[Array]:
        """A target each output: numbers, or labels of -1 and 1."""
        given = np.asarray(y)
        if given.shape != (n,):
            raise ValueError(f"y must have a value for each of the {n} rows of X, got shape {given.shape}")
        if not loss.of_labels:
            return [_finite("y", given)]
        classes = labels_in_order("y", given)
        if given.dtype.kind == "f" and (given % 1).any():
            raise ValueError(
                f"y has {excerpt(given[given % 1 != 0][0].item())}, which is not a label, and loss={self.loss!r} "
                'needs labels: use whole numbers or names, or loss="squared"'
            )
        if len(classes) < 2:
            raise ValueError(
                f"y has only the label {excerpt(classes[0])}: loss={self.loss!r} needs two or more classes"
            )
        positive = classes[1:] if len(classes) == 2 else classes
        return [np.where(given == label, 1.0, -1.0) for label in positive]

    def _prepare(self, X: Any, seed: int) -> Any:  # noqa: ARG002 - of use where it is overridden
        """What all outputs share."""
        return None

    @abc.abstractmethod
    def _solve(self, problem: LinearProblem, start: Array, seed: int, shared: Any) -> tuple[Array, History]:
        """The coefficients of one output, shape (p,), from `start`, and how it came to them."""


def dense_rows(X: Any, name: str = "X") -> Array:
    """Rows as contiguous float64 of shape (n, p), n and p at least 1.

    ValueError: They are not numbers, not finite, or not a matrix.
    """
    rows = _finite(name, X)
    if rows.ndim != 2 or not rows.size:
        raise ValueError(f"{name} must be a matrix of at least one row and one column, got shape {rows.shape}")
    return rows


def _finite(name: str, values: Any) -> Array:
    if sparse.issparse(values):
        raise ValueError(f"{name} is sparse, which only DSPDC accepts: pass {name}.toarray()")
    if getattr(type(values), "is_product", False):
        raise ValueError(f"{name} is a product of two factors, which only DSPDC accepts: pass U @ V")
    try:
        if np.iscomplexobj(values):
            raise ValueError
        numbers = np.ascontiguousarray(values, np.float64)
    except (TypeError, ValueError):
        raise ValueError(f"{name} must be numbers, got {excerpt(values)}") from None
    if not np.isfinite(numbers).all():
        place = tuple(int(i) for i in np.argwhere(~np.isfinite(numbers))[0])
        where = f"row {place[0]}" + (f", column {place[1]}" if len(place) > 1 else "")
        raise ValueError(f"{name} is {numbers[place]} at {where}: remove or fill such values")
    # Of arrays that are read-only all that is compiled would be compiled once more.
    return numbers if numbers.flags.writeable else numbers.copy()


def labels_in_order(name: str, labels: Array) -> Array:
    """The labels that there are, in ascending order.

    ValueError: They have no order, or one is not finite.
    """
    try:
        classes = np.unique(labels)
        # NaN in whatever type is not itself.
        finite = np.isfinite(classes).all() if classes.dtype.kind == "f" else (classes == classes).all()
    except TypeError:
        raise ValueError(
            f"{name} has labels that cannot be sorted, such as None, or numbers mixed with text: use one type, "
            "and leave out rows without a label"
        ) from None
    if not finite:
        raise ValueError(f"{name} has a label that is not finite: leave such rows out")
    return classes


def _weights(sample_weight: Any, n: int) -> Array:
    if sample_weight is None:
        return np.ones(n)
    weights = _finite("sample_weight", sample_weight)
    if weights.shape != (n,) or (weights < 0).any() or not weights.any():
        raise ValueError(f"sample_weight must be {n} numbers from 0 up, not all 0")
    shares = weights / weights.max()  # sums of shares do not overflow
    return np.asarray(shares / shares.mean())


def _starts(coef_init: Any, K: int, p: int) -> Array:
    if coef_init is None:
        return np.zeros((K, p))
    starts = _finite("coef_init", coef_init).reshape(-1, p) if np.size(coef_init) == K * p else None
    if starts is None:
        raise ValueError(f"coef_init must be of the shape of coef_, {(p,) if K == 1 else (K, p)}")
    return starts.copy()
