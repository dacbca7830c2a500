"""What the growing kernel machines have in common: arguments, state, learning."""

import abc
import math
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self, cast

import numpy as np
from river import base
from river.optim.base import Scheduler
from river.utils.dataframe import into_frame, into_series

from streamkernel.expansion import Expansion
from streamkernel.growth import CDSG, Growth
from streamkernel.inputs import Inputs
from streamkernel.kernels import Gaussian, Kernel
from streamkernel.losses import UNUSABLE
from streamkernel.machine import Advanced, Machine
from streamkernel.state import Array, Record, arguments, digest, misfit, rebuild
from streamkernel.targets import Targets

_VERSION = 1
_DTYPES = ("float32", "float64")


@dataclass(frozen=True)
class Outcome:
    """What a model said of records before it learnt them.

    Attributes
    ----------
    predictions
        A label (None before the first) or a number each.
    probabilities
        A distribution over the labels each; None for regressors.
    losses
        The model's own loss of each record, float64 of shape (n,); NaN where there is no label.

    """

    predictions: list[Any]
    probabilities: list[dict[Any, float]] | None
    losses: Array


class KernelMachine(base.Estimator, abc.ABC):
    """A growing kernel machine behind River's interface."""

    kernel: Kernel | None
    growth: Growth | None
    block_size: int
    batch_size: int
    max_features: int | None
    step: Scheduler | None
    regularization: float
    standardize: bool | None
    max_inputs: int
    cache_bytes: int
    dtype: str
    seed: int | None

    def _build(self, targets: Targets) -> Machine:
        """A fresh machine from the constructor's arguments."""
        self._check("kernel", self.kernel, Kernel)
        self._check("growth", self.growth, Growth)
        self._check("step", self.step, Scheduler)
        self._at_least("block_size", 1)
        self._at_least("batch_size", 1)
        if self.max_features is not None:
            self._at_least("max_features", self.block_size)
        self._at_least("max_inputs", 1)
        self._at_least("cache_bytes", 0)
        nu = self.regularization
        if not (isinstance(nu, int | float | np.number) and 0 <= nu < math.inf):
            raise ValueError(f"regularization must be a number from 0 up, got {nu!r}")
        if not isinstance(self.standardize, bool | None):
            raise ValueError(f"standardize must be True, False or None, got {self.standardize!r}")
        if self.dtype not in _DTYPES:
            raise ValueError(f"dtype must be one of {', '.join(_DTYPES)}, got {self.dtype!r}")
        whole = isinstance(self.seed, int | np.integer) and not isinstance(self.seed, bool)
        if self.seed is not None and not whole:
            raise ValueError(f"seed must be a whole number or None, got {self.seed!r}")
        seed = secrets.randbits(64) if self.seed is None else int(self.seed) % 2**64
        kernel = self.kernel or Gaussian()
        standardize = kernel.shift_invariant if self.standardize is None else bool(self.standardize)
        return Machine(
            Inputs(self.max_inputs, standardize),
            targets,
            Expansion(kernel, int(self.block_size), np.dtype(self.dtype), self.cache_bytes, seed),
            self.growth or CDSG(),
            self.batch_size,
            self.max_features,
            self.step,
            float(self.regularization),
        )

    def _check(self, name: str, value: object, *kinds: type) -> None:
        if isinstance(value, tuple(UNUSABLE)):
            why, instead = next(reason for kind, reason in UNUSABLE.items() if isinstance(value, kind))
            raise ValueError(f"{name}: river.optim.losses.{type(value).__name__} cannot be used, {why}: use {instead}")
        if value is not None and not isinstance(value, kinds):
            wanted = " or ".join(kind.__name__ for kind in kinds)
            raise ValueError(f"{name} must be None or a {wanted}, got {value!r}")

    def _at_least(self, name: str, least: int) -> None:
        value = getattr(self, name)
        if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < least:
            raise ValueError(f"{name} must be a whole number of at least {least}, got {value!r}")

    # Learning ---------------------------------------------------------------------------------------------------------

    def advance(self, xs: Sequence[Mapping[Any, Any]], ys: Sequence[Any], ws: Sequence[float] | None = None) -> Outcome:
        """Predict records, then learn them, one after the other.

        However a stream is cut into calls, of this or of `learn_one` and `learn_many`, the state ends up the same, bit
        for bit, and so do the predictions.

        Parameters
        ----------
        xs
            The records' inputs.
        ys
            Their targets. A record whose target is None is predicted and changes nothing.
        ws
            Weights, which multiply the gradient. All 1 by default.

        Raises
        ------
        ValueError
            A record cannot be used: an infinite input, an input or a target of a type that is none. Nothing of the call
            is learnt then.

        """
        return self._outcome(self._machine.advance(xs, ys, ws))

    @abc.abstractmethod
    def _outcome(self, advanced: Advanced) -> Outcome:
        """Scores as labels, probabilities or numbers."""

    def _predict(self, xs: Sequence[Mapping[Any, Any]]) -> Outcome:
        return self._outcome(self._machine.advance(xs, [None] * len(xs)))

    def learn_one(self, x: dict[Any, Any], y: Any, w: float = 1.0) -> None:
        """Learn a record.

        Parameters
        ----------
        x
            Inputs by name: numbers, booleans, strings (each value an indicator of its own), None where not observed.
        y
            The target; None changes nothing.
        w
            Weight, which multiplies the gradient. Defaults to 1.

        """
        self._machine.advance([x], [y], [w], predict=False)

    def learn_many(self, X: Any, y: Any, w: Sequence[float] | None = None) -> None:
        """Learn the rows of a data frame, exactly as `learn_one` would one after the other.

        Parameters
        ----------
        X
            Any eager data frame that narwhals knows (pandas, polars, pyarrow), shape (n, d).
        y
            A series of its kind, or any sequence, of n targets.
        w
            n weights. All 1 by default.

        """
        targets = y if isinstance(y, list | tuple | np.ndarray) else into_series(y).to_list()
        self._machine.advance(_records(X), list(targets), w, predict=False)

    # State ------------------------------------------------------------------------------------------------------------

    def __reduce__(self) -> tuple[Any, ...]:
        return rebuild, (type(self), {name: getattr(self, name) for name in self._get_params()}), self.__getstate__()

    def __getstate__(self) -> Record:
        return {"version": _VERSION, "arguments": arguments(self), **self._machine.record()}

    def __setstate__(self, record: Record) -> None:
        version = record.get("version")
        if version != _VERSION:
            raise ValueError(f"this state is of version {version}, and this streamkernel reads version {_VERSION}")
        given, stated = arguments(self), record.get("arguments")
        if not isinstance(stated, dict):
            raise misfit("arguments")
        for name in {**stated, **given}:
            if given.get(name) != stated.get(name):
                raise ValueError(
                    f"this state is of a model with {name}={stated.get(name)}, and this one has {given.get(name)}"
                )
        # Into a fresh model first: a record that does not fit must change nothing.
        fresh = self.clone()
        fresh._machine.restore(record)
        self._machine = fresh._machine
        self._targets = fresh._targets

    def state_digest(self) -> str:
        """SHA-256 of the whole state, arguments included: equal for models that have learnt the same in the same order.

        Returns
        -------
        64 hexadecimal digits.

        """
        return digest(self.__getstate__())

    # What a user would plot -------------------------------------------------------------------------------------------

    _machine: Machine
    _targets: Targets

    @property
    def n_records(self) -> int:
        """Labelled records learnt."""
        return self._machine.n_records

    @property
    def n_features(self) -> int:
        """Features in use; a feature is one frequency, its cosine and sine count once."""
        return self._machine.expansion.n_features

    @property
    def n_blocks(self) -> int:
        """Blocks of features in use."""
        return self._machine.expansion.n_blocks

    @property
    def n_steps(self) -> int:
        """Mini-batches learnt."""
        return self._machine.ledger.t

    @property
    def n_grown(self) -> int:
        """Steps that made a new block."""
        return self._machine.ledger.n_grown

    @property
    def n_reused(self) -> int:
        """Steps that touched an old block."""
        return self._machine.ledger.n_reused

    @property
    def last_check_margin(self) -> float:
        """By how much inequality (9) held when CDSG last reused a block, right side minus left; NaN before."""
        return self._machine.ledger.last_margin

    @property
    def gamma_0(self) -> float:
        """The first step size of the default rule; 0 before the first mini-batch."""
        return self._machine.ledger.gamma_0

    @property
    def bandwidth(self) -> float:
        """The kernel's length scale in use; 0 before the first mini-batch."""
        return self._machine.expansion.bandwidth

    @property
    def input_names(self) -> list[str]:
        """The inputs seen so far, `name` or, for the values of a string, `name=value`."""
        return self._machine.inputs.names

    @property
    def n_ignored_inputs(self) -> int:
        """Inputs ignored because they came past `max_inputs`, counted at every record learnt."""
        return self._machine.inputs.n_ignored

    @property
    def memory_bytes(self) -> int:
        """Bytes of coefficients and of cached frequencies."""
        return self._machine.expansion.nbytes

    @classmethod
    def _unit_test_params(cls) -> Any:
        yield {"seed": 1}

    def clone(self, new_params: dict[str, Any] | None = None, include_attributes: bool = False) -> Self:
        """A fresh model of the same arguments; with `include_attributes`, one that has learnt the same."""
        clone = super().clone(new_params)
        if include_attributes:
            clone.__setstate__({**self.__getstate__(), "arguments": arguments(clone)})
        return clone


def _records(X: Any) -> list[dict[Any, Any]]:
    return cast(list[dict[Any, Any]], list(into_frame(X).iter_rows(named=True)))
