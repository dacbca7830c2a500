"""The growing kernel machines: their arguments, their figures to plot, and those that learn several targets at once."""

import inspect
import math
from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
from river.optim.base import Scheduler

from streamkernel.arguments import new_seed, require_whole
from streamkernel.batch.growing import check_window, learn_batch
from streamkernel.batch.rows import BatchRows, ScoredBatch, step_here
from streamkernel.estimators.arguments import MOST_BLOCKS, inputs_of
from streamkernel.estimators.base import AdvanceResult, StreamEstimator
from streamkernel.estimators.explanation import shares_of
from streamkernel.expansion.expansion import Expansion
from streamkernel.fields import state_mismatch
from streamkernel.growth import CDSG, Growth
from streamkernel.growth.importances import importances
from streamkernel.growth.machine import Machine
from streamkernel.growth.record_machine import Figures, RecordMachine
from streamkernel.kernels import Gaussian, Kernel
from streamkernel.losses import is_smooth
from streamkernel.mixture.machine import MixtureMachine
from streamkernel.records.frames import Frame, target_dicts
from streamkernel.records.inputs import Inputs
from streamkernel.records.several import SeveralTargets
from streamkernel.records.targets import Targets


class GrowthFigures:
    """The public figures of a growing machine."""

    _machine: RecordMachine
    _lock: Any

    @property
    def _figures(self) -> Figures:
        """Those of the machine; a mixture learns the records that wait first, and no other thread may meanwhile."""
        with self._lock:
            return self._machine.figures

    @property
    def n_features(self) -> int:
        """The features in use. A feature is one draw: for a Fourier kernel, one frequency with its cosine and sine."""
        figures = self._figures
        return figures.n_blocks * figures.block_size

    @property
    def n_blocks(self) -> int:
        """The number of blocks of features in use."""
        return self._figures.n_blocks

    @property
    def n_steps(self) -> int:
        """The number of mini-batches learned."""
        return self._figures.n_steps

    @property
    def last_batch_size(self) -> int:
        """The number of records in the last mini-batch; 0 before the first.

        After a `batch_step`, the number of its records, else `batch_size`.
        """
        return self._figures.last_batch_size

    @property
    def n_grown(self) -> int:
        """The number of updates that made a new block. A step has `blocks_per_step` updates."""
        return self._figures.n_grown

    @property
    def n_reused(self) -> int:
        """The number of updates of an old block; of a mixture, the steps that made no block."""
        return self._figures.n_reused

    @property
    def last_check_margin(self) -> float:
        """The margin of inequality (9) at the last reuse of a block by CDSG: right side minus left side.

        NaN before the first reuse, and with preconditioned steps. Of a mixture, the largest margin at the last step
        that made no block: below 0 if there was no room for one.
        """
        return self._figures.last_margin

    @property
    def gamma_0(self) -> float:
        """The first step size of the default rule, for `batch_size` records if steps are plain; 0 before a step."""
        return self._figures.gamma_0

    @property
    def bandwidth(self) -> float:
        """The length scale in use: 0 before the first mini-batch, 1 for a kernel without one to choose."""
        return self._figures.bandwidth

    @property
    def expert_weights(self) -> dict[str, float]:
        """The weight of each head and of the linear expert in the prediction, by name.

        Empty before the first labeled record. The machine of the papers has no experts: AttributeError.
        """
        with self._lock:
            if not isinstance(self._machine, MixtureMachine):
                raise AttributeError("expert_weights: the machine of the papers has no experts")
            return self._machine.expert_weights

    @property
    def feature_importances_(self) -> dict[str, float]:
        """How far each input moves predictions, by name, as shares of 1, largest first; empty before the first step.

        An input's share is its mean absolute contribution, similar to `explain_one`, at up to 128 generated points.
        Numbers are normal with the mean and variance of the stream, and values of a string have its frequencies. All
        values of a string are one input. It costs at most about 1,000 predictions, or 8 for each input if there are
        more than 128.
        """
        with self._lock:
            return shares_of(importances(self._machine) if self._machine.figures.n_blocks else [])

    @property
    def memory_bytes(self) -> int:
        """Bytes of the coefficients and the cached frequencies."""
        return self._machine.nbytes


#: Features of a block of a plain step and of a preconditioned one, and blocks of the latter, unless the user says
#: otherwise.
BLOCK_SIZE, PRECONDITIONED_BLOCK_SIZE, BLOCKS = 32, 64, 2
#: Arguments whose None leaves them to us or, where one is loaded, to a state.
_LEFT_OPEN = ("block_size", "precondition", "blocks_per_step")
#: Arguments of the papers' machine: who gives one has it, and otherwise a mixture.
_OF_PAPERS = (
    "kernel",
    "loss",
    "growth",
    "block_size",
    "batch_size",
    "step",
    "regularization",
    "dtype",
    "precondition",
    "blocks_per_step",
    "average",
)


class KernelMachine(StreamEstimator, GrowthFigures):
    """A growing kernel machine under River's interface."""

    kernel: Kernel | None
    growth: Growth | None
    block_size: int | None
    batch_size: int
    max_features: int | None
    step: Scheduler | None
    regularization: float
    standardize: bool | None
    max_inputs: int
    cache_bytes: int
    dtype: str
    seed: int | None
    precondition: bool | None
    blocks_per_step: int | None
    average: bool
    _machine: RecordMachine
    #: Whether the machine is a mixture unless the papers' is asked for.
    _mixes = False
    #: The most that a state may say of arguments that are left to it.
    default_sizes: ClassVar[dict[str, int]] = {"block_size": 2**16, "blocks_per_step": MOST_BLOCKS}
    _left_out: ClassVar[dict[str, Any]] = {"precondition": False, "blocks_per_step": 1, "average": False}

    def _build(self, targets: Targets) -> RecordMachine:
        """A fresh machine from the constructor's arguments."""
        inputs, seed = self._checked()
        defaults = inspect.signature(type(self)).parameters
        if self._mixes and all(getattr(self, name) == defaults[name].default for name in _OF_PAPERS):
            return MixtureMachine(inputs, targets, self.max_features, seed)
        return self._build_papers(inputs, targets, seed)

    def _checked(self) -> tuple[Inputs, int]:
        """Check the constructor's arguments; fresh inputs and the seed."""
        if self.max_features is not None:
            require_whole("max_features", self.max_features, self.block_size or BLOCK_SIZE)
        kernel = self.kernel or Gaussian()
        if kernel.structured and self.dtype != "float32":
            raise ValueError(f"structured frequencies need float32, got dtype={self.dtype!r}: change one of the two")
        return inputs_of(self, kernel), new_seed(self.seed)

    def _build_papers(
        self, inputs: Inputs, targets: Targets, seed: int, stated: dict[str, Any] | None = None
    ) -> Machine:
        """A fresh machine of the papers, with the arguments that are left to a state."""
        block_size, precondition, blocks_per_step = {**self._by_default(), **(stated or {}), **self._given()}.values()
        return Machine(
            inputs,
            targets,
            Expansion(self.kernel or Gaussian(), int(block_size), np.dtype(self.dtype), self.cache_bytes, seed),
            self.growth or CDSG(),
            self.batch_size,
            self.max_features,
            self._schedule(),
            float(self.regularization),
            precondition,
            blocks_per_step,
            self.average,
        )

    def batch_step(self, X: Any, y: Any, w: Sequence[float] | None = None) -> AdvanceResult:
        """Predict the rows of a data frame or array, then make one step of the algorithm on all labeled rows.

        The mini-batch is all given rows, whatever `batch_size` is. Its size enters the step size and inequality (9).
        The order of its rows changes only rounding.

        A sample of at most 2,048 rows, chosen by hashes of their content, determines the moments of inputs and targets,
        an open bandwidth and the first step size. The moments before the batch scale its rows, and the first batch uses
        its own. New columns and labels join in the order of their keys. While an open bandwidth waits for its first 200
        records, a smaller batch is learned record by record.

        Parameters
        ----------
        X
            An eager data frame that narwhals supports (pandas, polars, pyarrow), or an array, of shape (n, d), as for
            `learn_many`.
        y
            The n targets. A row with None, null or a missing target is only predicted.
        w
            The n weights. All 1 by default.

        Returns
        -------
        The predictions of all rows, each made before the step, and their losses.

        Raises
        ------
        ValueError
            A row is unusable, or the model belongs to a `WindowRefit`. The batch is then not learned.
        NotFiniteError
            The kernel, loss, step schedule or policy returned a value that is not finite. The batch is then not
            learned.
        TypeError
            X or y is not a frame, series, array or list.

        Examples
        --------
        >>> import numpy as np
        >>> from streamkernel import KernelRegressor
        >>> X = np.random.default_rng(1).normal(size=(4000, 2))
        >>> y = np.sin(X[:, 0]) * X[:, 1]
        >>> model = KernelRegressor(seed=1)
        >>> first, second = (model.batch_step(X[:2000], y[:2000]), model.batch_step(X[2000:], y[2000:]))
        >>> bool(second.losses.mean() < first.losses.mean() / 2), model.n_steps, model.last_batch_size
        (True, 2, 2000)

        References
        ----------
        [^1]: Dai et al., "Scalable kernel methods via doubly stochastic gradients", 2014, algorithm 1 on a mini-batch.

        """
        with self._lock:
            if isinstance(self._machine, Machine):
                check_window(self._machine)
            return self._outcome(step_here(self, X, y, w))

    def _learn_batch(self, batch: BatchRows) -> ScoredBatch:
        return learn_batch(self._papers_machine("a batch step"), batch)

    def _papers_machine(self, what: str) -> Machine:
        """The machine of the papers, which a mixture becomes that has learned nothing.

        ValueError: It has learned.
        """
        machine = self._machine
        if isinstance(machine, Machine):
            return machine
        if machine.n_records:
            raise ValueError(
                f"{what} needs the machine of the papers, and this model has learned as a mixture: "
                "give it growth=streamkernel.growth.CDSG()"
            )
        self._machine = machine = self._build_papers(machine.inputs, self._targets, *self._checked()[1:])
        return machine

    def _schedule(self) -> Scheduler | None:
        """The schedule of step sizes; None for the default rule of the machine."""
        return self.step

    def _given(self) -> dict[str, Any]:
        """Of the arguments whose None leaves them to us or to a state, those that are given."""
        values = {name: getattr(self, name) for name in _LEFT_OPEN}
        return {name: value for name, value in values.items() if value is not None}

    def _by_default(self) -> dict[str, Any]:
        """What these arguments come to."""
        # The steps of a schedule have always been of gradients; and where a derivative jumps there is nothing to solve.
        by_default = self.step is None and is_smooth(self._targets.loss)
        precondition = by_default if self.precondition is None else self.precondition
        n = math.inf if self.max_features is None else self.max_features
        if precondition:
            sizes = PRECONDITIONED_BLOCK_SIZE if n >= PRECONDITIONED_BLOCK_SIZE else BLOCK_SIZE, True, BLOCKS
        else:
            sizes = BLOCK_SIZE, False, 1
        return dict(zip(_LEFT_OPEN, sizes, strict=True))

    @property
    def open_arguments(self) -> dict[str, Any]:
        """The values in use of `block_size`, `precondition` and `blocks_per_step`, for those that are None."""
        machine = self._machine
        if not isinstance(machine, Machine):
            return {}
        in_use = machine.expansion.block_size, machine.updates.preconditioned, machine.updates.blocks_per_step
        return {name: value for name, value in zip(_LEFT_OPEN, in_use, strict=True) if getattr(self, name) is None}

    def _go_on_with(self, stated: dict[str, Any]) -> None:
        # Of a mixture, or of another estimator, which the comparison of all arguments tells.
        if stated.get("block_size") is None:
            return
        chosen = {name: stated[name] for name in _LEFT_OPEN}
        if not isinstance(chosen["precondition"], bool) or not all(map(self._is_possible, chosen.items())):
            raise state_mismatch("arguments")
        inputs, seed = self._checked()
        self._machine = self._build_papers(inputs, self._targets, seed, chosen)

    def _is_possible(self, stated: tuple[str, Any]) -> bool:
        """Whether a state may say this of an argument: one that is left to it must not ask for any memory or time."""
        name, value = stated
        most = self.default_sizes.get(name)
        if most is None:
            return True
        if name == "block_size" and self.max_features is not None:
            most = min(most, self.max_features)
        return type(value) is int and value > 0 and (value <= most or value == getattr(self, name))


class SeveralLearner(KernelMachine):
    """A growing kernel machine of one expansion whose coefficients have a column for each target."""

    _targets: SeveralTargets

    def learn_many(self, X: Any, y: Any, w: Sequence[float] | None = None) -> None:
        """Learn the rows of a data frame or array, exactly as `learn_one` would one by one.

        Parameters
        ----------
        X, w
            As in `KernelClassifier.learn_many`.
        y
            The targets: a data frame with a column for each, an array of shape (n, K) whose targets are named 0 to K -
            1, or a list of n dicts. The model learns nothing of a target that is None, null or, in a pandas frame, NaN
            or NA.

        """
        with self._lock:
            self._machine.learn(Frame(X), target_dicts(y), w)

    def batch_step(self, X: Any, y: Any, w: Sequence[float] | None = None) -> AdvanceResult:  # noqa: ARG002
        """Refuse: a step on a batch takes one target.

        Raises
        ------
        ValueError
            Always.

        """
        raise ValueError(
            f"a {type(self).__name__} takes no batch steps, because they take one target: call learn_many, which "
            "learns the rows one by one"
        )
