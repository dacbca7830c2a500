"""The common part of all estimators: learning, state, and River's interface to both."""

import abc
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np
from river import base

from streamkernel.arguments import keep_arguments, lines
from streamkernel.estimators.arguments import check_arguments
from streamkernel.estimators.thread_lock import ThreadLock
from streamkernel.fields import check_version, state_mismatch
from streamkernel.records.frames import Frame, target_list
from streamkernel.records.results import BatchResult, LabelDistributions
from streamkernel.state import Array, State, arguments, digest, excerpt, rebuild

#: The version of the states that are written and read.
VERSION = 11
#: What a label counts as at least, and the others together, in the loss of a prediction.
LEAST_PROBABILITY = 1e-15


class AdvanceResult:
    """Predictions of records, each made before its record was learned, and their losses.

    Parameters
    ----------
    predictions
        A label (None before the first) or a number for each record, the numbers also as an array; of several targets, a
        dict of these. None: the most probable label of each.
    probabilities
        A distribution over the labels for each record, also as a table; of several labels, one for each. None for
        regressors.
    losses
        The model's own loss of each record, float64 of shape (n,). NaN for a record without a label.
    deviations
        The standard deviation of each prediction, float64 of shape (n,). For an adaptive regressor, it is the deviation
        of the last errors before the record, 0 before the first. For a Gaussian process, it is the posterior's. None
        for models without a distribution.

    Attributes
    ----------
    numbers, distributions
        The predictions as an array and the probabilities as a table; None where they were not given as such.

    Examples
    --------
    >>> from streamkernel import KernelRegressor
    >>> result = KernelRegressor(seed=1).advance([{"a": 1.0}, {"a": 1.0}], [2.0, 2.0])
    >>> result.predictions, result.numbers, result.probabilities
    ([0.0, 2.0], array([0., 2.]), None)

    """

    def __init__(
        self,
        predictions: list[Any] | Array | None,
        probabilities: list[dict[Any, Any]] | LabelDistributions | None,
        losses: Array,
        deviations: Array | None = None,
    ) -> None:
        self.numbers = predictions if isinstance(predictions, np.ndarray) else None
        self.distributions = probabilities if isinstance(probabilities, LabelDistributions) else None
        self._predictions, self._probabilities = predictions, probabilities
        self.losses = losses
        self.deviations = deviations

    def __repr__(self) -> str:
        shown = "predictions", "probabilities", "losses", "deviations"
        return f"AdvanceResult({', '.join(f'{name}={getattr(self, name)!r}' for name in shown)})"

    @cached_property
    def predictions(self) -> list[Any]:
        """A label or a number for each record; of several targets, a dict of these."""
        if self.numbers is not None:
            return list(self.numbers.tolist())
        if self.distributions is not None:
            return self.distributions.most_probable
        if self._predictions is not None:
            return list(self._predictions)
        return [max(one, key=one.__getitem__) if one else None for one in self._probabilities or ()]

    @cached_property
    def probabilities(self) -> list[dict[Any, Any]] | None:
        """A distribution over the labels for each record; None for regressors."""
        return None if self._probabilities is None else list(self._probabilities)


def machine_of(estimator: Any) -> Any:
    """Return the machine of an estimator, for code that runs it elsewhere (Spark) or inspects it."""
    return estimator._machine


class StreamEstimator(base.Estimator, abc.ABC):
    """The base class of the estimators: a machine under River's interface, and its state."""

    #: Predicts and learns records: `advance`, `learn`, `learn_plain`, `predict`, and the state.
    _machine: Any
    _targets: Any
    #: Held while learning or predicting: both use the machine's scratch arrays, and compiled code releases the GIL.
    _lock = ThreadLock()
    #: Arguments that a state leaves out at these values.
    _left_out: ClassVar[dict[str, Any]] = {}

    def _keep(self, given: Mapping[str, Any]) -> None:
        """Set the constructor's arguments, its `locals()`, as attributes, and check them."""
        keep_arguments(self, given)
        check_arguments(self)

    # Learning ---------------------------------------------------------------------------------------------------------

    def advance(
        self, xs: Sequence[Mapping[Any, Any]], ys: Sequence[Any], ws: Sequence[float] | None = None
    ) -> AdvanceResult:
        """Predict records, then learn them, one after the other.

        The division of a stream into calls of `advance`, `learn_one` and `learn_many` changes neither the state nor the
        predictions by a bit.

        Parameters
        ----------
        xs
            The records' inputs.
        ys
            Their targets. A record with the target None is predicted and changes nothing.
        ws
            Weights. All 1 by default.

        Raises
        ------
        ValueError
            A record is unusable: an input is infinite, or an input or a target has an invalid type. The call then
            learns nothing.
        TypeError
            A record is not a dict. The call then learns nothing.

        """
        with self._lock:
            return self._outcome(self._machine.advance(xs, ys, ws))

    @abc.abstractmethod
    def _outcome(self, batch: BatchResult) -> AdvanceResult:
        """The result of a machine as labels, probabilities or numbers."""

    def learn_one(self, x: dict[Any, Any], y: Any, w: float = 1.0) -> None:
        """Learn a record.

        Parameters
        ----------
        x
            Inputs by name: numbers, booleans, strings (an indicator for each value), and None for a missing one.
        y
            The target. None changes nothing.
        w
            The weight, from 0 up. Values above 1e6 count as 1e6. Defaults to 1.

        """
        with self._lock:
            if w != 1 or not self._machine.learn_plain(x, y):
                self._machine.learn([x], [y], [w])

    def learn_many(self, X: Any, y: Any, w: Sequence[float] | None = None) -> None:
        """Learn the rows of a data frame or array, exactly as `learn_one` would one by one.

        It reads whole columns, not rows. Null and NaN count as missing. A column of strings or categories becomes an
        indicator for each of its values. Rows, targets and weights belong together by position, as in River: the index
        of a frame or series is ignored.

        Parameters
        ----------
        X
            An eager data frame that narwhals supports (pandas, polars, pyarrow), or an array, of shape (n, d). The
            columns of an array have the names 0 to d - 1, as in `learn_one({0: ..., 1: ...})`.
        y
            A series, an array of shape (n,), a `pyarrow.Array` or a list of n targets. The model does not learn a row
            with the target None, null or, in a pandas series, NaN or NA.
        w
            The n weights. All 1 by default.

        Raises
        ------
        ValueError
            A row is unusable: an input is infinite, or an input, a target or a weight is invalid. Or the number of
            targets or weights differs from the number of rows. The call then learns nothing.
        TypeError
            X or y is not a frame, series, array or list.

        """
        with self._lock:
            self._machine.learn(Frame(X), target_list(y), w)

    # State ------------------------------------------------------------------------------------------------------------

    def __reduce__(self) -> tuple[Any, ...]:
        return rebuild, (type(self), {name: getattr(self, name) for name in self._get_params()}), self.__getstate__()

    def __getstate__(self) -> State:
        left_out = self._left_out_arguments()
        with self._lock:
            saved = {name: own for name, own in self._state_arguments().items() if own != left_out.get(name, left_out)}
            return {"version": VERSION, "arguments": saved, **self._machine.state()}

    @property
    def open_arguments(self) -> dict[str, Any]:
        """The values in use of the arguments that are None, which the estimator or a state chose."""
        return {}

    def _state_arguments(self) -> dict[str, Any]:
        """The arguments with which this state continues."""
        return {**arguments(self), **self.open_arguments}

    def _left_out_arguments(self) -> dict[str, Any]:
        """The arguments that a state leaves out, with the values at which it does."""
        return self._left_out

    def _go_on_with(self, stated: dict[str, Any]) -> None:
        """Take from a state's arguments what those of this model leave to it."""

    def __setstate__(self, state: State) -> None:
        check_version(state, VERSION)
        stated = state.get("arguments")
        if not isinstance(stated, dict):
            raise state_mismatch("arguments")
        stated = {**self._left_out_arguments(), **stated}
        # Into a fresh model first: a record that does not fit must change nothing.
        fresh = self.clone()
        fresh._go_on_with(stated)
        given = fresh._state_arguments()
        for name in {**stated, **given}:
            if given.get(name) != stated.get(name):
                theirs, own = excerpt(stated.get(name)), excerpt(given.get(name))
                raise ValueError(f"this state is from a model with {name}={theirs}, and this model has {own}")
        fresh._machine.load_state(state)
        with self._lock:
            self._machine = fresh._machine
            self._targets = fresh._targets

    def state_digest(self) -> str:
        """Return the SHA-256 of the state, equal for models that learned the same records in the same order.

        Returns
        -------
        64 hexadecimal digits.

        """
        return digest(self.__getstate__())

    def __repr__(self) -> str:
        return lines(self)

    # What a user would plot -------------------------------------------------------------------------------------------

    @property
    def n_records(self) -> int:
        """The number of labeled records learned."""
        return int(self._machine.n_records)

    @property
    def input_names(self) -> list[str]:
        """The inputs seen so far: `name` or, for the values of a string, `name=value`."""
        return list(self._machine.inputs.columns.names)

    @property
    def n_ignored_inputs(self) -> int:
        """The number of inputs ignored because of `max_inputs`, counted at every learned record."""
        return int(self._machine.inputs.n_ignored)

    @classmethod
    def _unit_test_params(cls) -> Any:
        yield {"seed": 1}

    def clone(self, new_params: dict[str, Any] | None = None, include_attributes: bool = False) -> Self:
        """Return a fresh model with the same arguments, or with `include_attributes` a copy with the same state."""
        clone = super().clone(new_params)
        if include_attributes:
            clone._go_on_with(self._state_arguments())
            clone.__setstate__({**self.__getstate__(), "arguments": clone._state_arguments()})
        return clone


def most_probable(labels: Sequence[Any], probabilities: Array) -> list[Any]:
    """Return the most probable label of each row of (n, K) probabilities, the first of equals; None without labels."""
    if not labels:
        return [None] * len(probabilities)
    return list(map(labels.__getitem__, probabilities.argmax(axis=1).tolist()))
