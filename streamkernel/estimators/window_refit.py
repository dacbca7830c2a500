"""A River wrapper that refits a growing model's coefficients on its last records."""

import inspect
from collections.abc import Sequence
from typing import Any, ClassVar, Self

import numpy as np
from river import base

from streamkernel.arguments import require_whole
from streamkernel.estimators.base import AdvanceResult, StreamEstimator
from streamkernel.estimators.classifier import KernelClassifier
from streamkernel.estimators.explanation import LabelExplainer, NumberExplainer
from streamkernel.estimators.growing import GrowthFigures
from streamkernel.estimators.regressor import KernelRegressor
from streamkernel.growth.machine import Machine
from streamkernel.records.batches import Records
from streamkernel.records.results import BatchResult
from streamkernel.state import Array, excerpt, rebuild
from streamkernel.window.linear_model import LinearSolver
from streamkernel.window.refit import LastRefit, Refit, default_solver, require_solvable

#: The prefix of the wrapped model's arguments in a state.
_PREFIX = "model."


class WindowRefit(StreamEstimator, GrowthFigures, base.Wrapper[Any]):
    """A wrapper that periodically solves the coefficients of a growing model on its last records.

    It learns like the model and keeps the last `window` labeled records unscaled. After every `every` of them, it
    solves the coefficients of all blocks in use on the kept records, starting from the current values. It scales inputs
    and targets by the current moments and recomputes the features. A refit finishes before the next record, so calls
    may divide the stream anywhere. After a refit, inequality (9) starts again, and steps keep their step size.

    It is a classifier or a regressor, like the model. `Exact()` solves any smooth loss of the model, including the
    softmax of all classes. Other solvers support the squared loss, `Log` and `SquaredHinge`. For the softmax of two
    classes they use the sigmoid of one score. For K > 2 classes they solve one against rest, by the logistic loss.

    Parameters
    ----------
    model
        A `KernelClassifier` or `KernelRegressor` with a smooth loss and `max_features`. It learns with the wrapper.
    window
        The largest number of labeled records to keep. Defaults to 50,000.
    every
        The number of labeled records between two refits. Defaults to 10,000.
    solver
        The solver, which uses the model's loss. Its `l2` has the same meaning as the model's `regularization`: the
        weight of the squared norm of f in the kernel's space. None (the default) is `Exact`. For more than 1,024
        features of a Fourier kernel, it is `S3GD` with 10 passes, if that supports the loss. The `l2` is then 1e-4 for
        classifiers and 1e-5 for regressors.
    max_bytes
        The largest size of the kept records, at 8 bytes an input. Fewer records fit if they have many inputs. A refit
        may use the same number of bytes again. `Exact` needs 8 bytes for each pair of features' cosines and sines, and
        raises an error if that exceeds the bound. Other solvers use the newest records that fit. Defaults to 2^29, half
        a gigabyte.

    Examples
    --------
    >>> from river import datasets, evaluate, metrics
    >>> from streamkernel import KernelClassifier, WindowRefit
    >>> model = WindowRefit(KernelClassifier(max_features=256, seed=1), window=1000, every=300)
    >>> accuracy = evaluate.progressive_val_score(datasets.Phishing(), model, metrics.Accuracy())
    >>> accuracy.get() > 0.88, model.n_refits
    (True, 4)

    References
    ----------
    [^1]: Yu, Lin and Yang, "Doubly stochastic primal-dual coordinate method for bilinear saddle-point problem", 2015.
    [^2]: Mu, Liu and Fan, "Stochastic gradient made stable: a manifold propagation approach for large-scale
        optimization", 2016.

    """

    model: Any
    window: int
    every: int
    solver: LinearSolver | None
    max_bytes: int
    _kind: ClassVar[type]
    #: The l2 of the default solver.
    _l2: ClassVar[float]

    def __new__(cls, *given: Any, **named: Any) -> Any:
        """An instance of the subclass for classifiers or for regressors."""
        if cls is WindowRefit:
            model = named.get("model", given[0] if given else None)
            return object.__new__(WindowRefitRegressor if isinstance(model, KernelRegressor) else WindowRefitClassifier)
        return object.__new__(cls)

    def __init__(
        self,
        model: KernelClassifier | KernelRegressor,
        window: int = 50_000,
        every: int = 10_000,
        solver: LinearSolver | None = None,
        max_bytes: int = 2**29,
    ) -> None:
        self._keep(locals())
        require_whole("max_bytes", max_bytes)
        if not isinstance(model, self._kind):
            wanted = "a KernelClassifier or KernelRegressor" if type(self) in _KINDS else self._kind.__name__
            raise ValueError(f"model must be {wanted}, got {excerpt(model)}")
        model._papers_machine("a WindowRefit")
        self._solver._checked()
        self._add_window()

    # As `inspect.signature` of a class looks at `__new__` first.
    __new__.__signature__ = inspect.signature(__init__)  # type: ignore[attr-defined]

    @property
    def _solver(self) -> LinearSolver:
        machine = self.model._machine
        return self.solver or default_solver(
            machine.targets, self.model.max_features, machine.expansion.kernel, self._l2
        )

    def _add_window(self) -> None:
        """Give the model's machine, which may be another since, its window."""
        machine = self.model._machine
        solver = self._solver
        n_parts = machine.expansion.kernel.n_parts
        require_solvable(solver, machine.targets, self.model.max_features, n_parts, self.max_bytes)
        Refit(machine, self.window, self.every, solver, self.max_bytes)

    @property  # type: ignore[override]
    def _machine(self) -> Machine:
        machine: Machine = self.model._machine
        return machine

    @_machine.setter
    def _machine(self, machine: Machine) -> None:
        self.model._machine = machine

    @property
    def _lock(self) -> Any:
        return self.model._lock

    @property
    def _targets(self) -> Any:
        return self.model._targets

    @_targets.setter
    def _targets(self, targets: Any) -> None:
        self.model._targets = targets

    @property
    def _refit(self) -> Refit:
        refit = self._machine.window
        assert isinstance(refit, Refit)
        return refit

    def refit(self) -> bool:
        """Solve the coefficients now. The next refit is `every` labeled records later.

        Returns
        -------
        Whether there was something to solve. This needs a fixed bandwidth, a first step and, for a classifier, two
        labels in the window.

        Raises
        ------
        ValueError
            The solver rejects the window, for example because its normal equations are singular. The model is
            unchanged.

        """
        with self._lock:
            return self._refit.solve()

    @property
    def n_refits(self) -> int:
        """The number of refits."""
        return self._refit.n_refits

    @property
    def n_refit_failures(self) -> int:
        """The number of failed refits in this process. After a failure, the model continues unchanged."""
        return self._refit.n_failures

    @property
    def last_refit(self) -> LastRefit | None:
        """The records, seconds and mean loss of the last refit in this process; None before the first."""
        return self._refit.last

    @property
    def refit_seconds(self) -> float:
        """The total seconds of all refits in this process."""
        return self._refit.seconds

    @property
    def refitting(self) -> bool:
        """Whether a refit is in progress. Another thread can ask."""
        return self._refit.at_work

    @property
    def n_window(self) -> int:
        """The number of records kept."""
        return len(self._refit.records)

    @property
    def max_window(self) -> int:
        """The largest number of records to keep: `window`, or fewer if `max_bytes` requires it."""
        return self._refit.records.most

    @property
    def memory_bytes(self) -> int:
        """Bytes of the coefficients, the cached frequencies and the kept records."""
        return self._machine.nbytes + self._refit.records.nbytes

    # Learning and predicting, with whatever arguments River's wrappers pass on ----------------------------------------

    def learn_one(self, x: dict[Any, Any], y: Any, w: float = 1.0, **_: Any) -> None:
        """Learn a record, like the model."""
        super().learn_one(x, y, w)

    def learn_many(self, X: Any, y: Any, w: Sequence[float] | None = None, **_: Any) -> None:
        """Learn the rows of a data frame or array, like the model."""
        super().learn_many(X, y, w)

    def predict_one(self, x: dict[Any, Any], **_: Any) -> Any:
        """Return the model's prediction of one record."""
        return self.model.predict_one(x)

    def predict_many(self, X: Any, **_: Any) -> Any:
        """Return the model's predictions of the rows of a data frame or array."""
        return self.model.predict_many(X)

    def _outcome(self, batch: BatchResult) -> AdvanceResult:
        outcome: AdvanceResult = self.model._outcome(batch)
        return outcome

    # State ------------------------------------------------------------------------------------------------------------

    def __reduce__(self) -> tuple[Any, ...]:
        given = {name: getattr(self, name) for name in self._get_params()}
        return rebuild, (type(self), {**given, "model": _Unlearned(self.model)}), self.__getstate__()

    def __copy__(self) -> Self:
        return self.clone(include_attributes=True)

    def __str__(self) -> str:
        return f"{WindowRefit.__name__}({self.model})"

    @property
    def _wrapped_model(self) -> Any:
        return self.model

    def _state_arguments(self) -> dict[str, Any]:
        own = super()._state_arguments()
        ((kind, _),) = own.pop("model").items()
        wrapped = {f"{_PREFIX}{name}": value for name, value in self.model._state_arguments().items()}
        return {"model": kind, **wrapped, **own}

    def _left_out_arguments(self) -> dict[str, Any]:
        return {f"{_PREFIX}{name}": value for name, value in self.model._left_out_arguments().items()}

    def _go_on_with(self, stated: dict[str, Any]) -> None:
        own = {name.removeprefix(_PREFIX): value for name, value in stated.items() if name.startswith(_PREFIX)}
        self.model._go_on_with(own)
        self._add_window()


class WindowRefitClassifier(WindowRefit, LabelExplainer, base.MiniBatchClassifier):
    """A `WindowRefit` of a classifier, which `WindowRefit(model)` returns."""

    _kind = KernelClassifier
    _l2 = 1e-4

    @property
    def _multiclass(self) -> bool:
        multiclass: bool = self.model._multiclass
        return multiclass

    @property
    def classes(self) -> list[Any]:
        """The labels seen so far, or the two labels of a two-class loss."""
        return list(self.model.classes)

    @property
    def n_ignored_labels(self) -> int:
        """The number of records that were only predicted, because of the model's `max_classes`."""
        return int(self.model.n_ignored_labels)

    def predict_proba_one(self, x: dict[Any, Any], **_: Any) -> dict[Any, float]:
        """Predict the probability of each label seen so far, for one record; empty before the first."""
        probabilities: dict[Any, float] = self.model.predict_proba_one(x)
        return probabilities

    def predict_proba_many(self, X: Any, **_: Any) -> Any:
        """Predict the probability of each label seen so far, for the rows of a data frame or array."""
        return self.model.predict_proba_many(X)

    def loss_of(self, y: Any, prediction: dict[Any, float]) -> float:
        """Compute the model's own loss of a prediction made before its label was known."""
        return float(self.model.loss_of(y, prediction))

    def _predicted_probabilities(self, xs: Records) -> tuple[list[Any], Array]:
        predicted: tuple[list[Any], Array] = self.model._predicted_probabilities(xs)
        return predicted

    @classmethod
    def _unit_test_params(cls) -> Any:
        yield {"model": KernelClassifier(max_features=128, seed=1), "window": 100, "every": 40}


class WindowRefitRegressor(WindowRefit, NumberExplainer, base.MiniBatchRegressor):
    """A `WindowRefit` of a regressor, which `WindowRefit(model)` returns."""

    _kind = KernelRegressor
    _l2 = 1e-5

    @property
    def n_clipped_targets(self) -> int:
        """The number of targets clipped to +-1e100."""
        return int(self.model.n_clipped_targets)

    def loss_of(self, y: float, prediction: float, unit: float | None = None) -> float:
        """Compute the model's own loss of a prediction made before its target was known."""
        return float(self.model.loss_of(y, prediction, unit))

    def _predicted_numbers(self, xs: Records) -> Array:
        return np.asarray(self.model._predicted_numbers(xs))

    @classmethod
    def _unit_test_params(cls) -> Any:
        yield {"model": KernelRegressor(max_features=128, seed=1), "window": 100, "every": 40}


class _Unlearned:
    """A model in a pickle without what it has learned, which the wrapper's state has."""

    def __init__(self, model: StreamEstimator) -> None:
        self._model = model

    def __reduce__(self) -> tuple[Any, ...]:
        return self._model.__reduce__()[:2]


_KINDS = (WindowRefitClassifier, WindowRefitRegressor)
