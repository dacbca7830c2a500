"""The arguments of the estimators: one table of checks by name, and the inputs and features that they describe."""

from collections.abc import Callable
from importlib import import_module
from typing import Any

from river.optim.base import Scheduler

from streamkernel.adaptive.features import AdaptiveFeatures
from streamkernel.arguments import (
    is_finite_number,
    is_whole,
    new_seed,
    require_flag,
    require_number,
    require_seed,
    require_whole,
)
from streamkernel.kernels import Gaussian, Kernel
from streamkernel.kernels.spectral import require_fourier
from streamkernel.losses import UNUSABLE
from streamkernel.records.inputs import Inputs
from streamkernel.state import excerpt

#: Below, float64 does not keep P positive where inputs are copies of each other.
LEAST_RIDGE = 1e-9
#: Features of a block and records of a step: of one more, no machine of today has the memory.
MOST_AT_ONCE = 2**24
#: The most blocks that a mini-batch updates.
MOST_BLOCKS = 2**10
#: The longest window of averages: beyond, no record would count less than the one after it.
MOST_WINDOW = 2**53
_EXAMPLES = {
    "BinaryLoss": "river.optim.losses.Hinge()",
    "Growth": "streamkernel.growth.CDSG()",
    "Kernel": "streamkernel.kernels.Gaussian()",
    "LinearSolver": "streamkernel.window.Exact()",
    "RegressionLoss": "river.optim.losses.Huber()",
    "Scheduler": "river.optim.schedulers.Constant(0.1)",
    "VarianceEstimator": "streamkernel.gaussian_process.VarianceOperator()",
}

_Check = Callable[[str, Any], None]


def require_component(name: str, value: object, *kinds: type) -> None:
    """Refuse a value that is neither None nor of one of some kinds, and River's losses that cannot be used."""
    if isinstance(value, tuple(UNUSABLE)):
        why, instead = next(reason for kind, reason in UNUSABLE.items() if isinstance(value, kind))
        raise ValueError(f"{name}: river.optim.losses.{type(value).__name__} cannot be used, {why}: use {instead}")
    if value is not None and not isinstance(value, kinds):
        wanted = " or ".join(kind.__name__ for kind in kinds)
        like = _EXAMPLES[kinds[0].__name__]
        raise ValueError(f"{name} must be None or a {wanted} such as {like}, got {excerpt(value)}")


def _component(kind: type) -> _Check:
    return lambda name, value: require_component(name, value, kind)


def _component_of(module: str, kind: str) -> _Check:
    """The same of a kind whose module is imported with the first value of it: most estimators have none."""

    def check(name: str, value: object) -> None:
        if value is not None:
            require_component(name, value, getattr(import_module(module), kind))

    return check


def _whole(least: int, most: int | None = None) -> _Check:
    return lambda name, value: require_whole(name, value, least, most)


def _whole_or_none(least: int, most: int | None = None) -> _Check:
    return lambda name, value: None if value is None else require_whole(name, value, least, most)


def _number(wanted: str, fits: Callable[[float], bool]) -> _Check:
    return lambda name, value: require_number(name, value, wanted, fits)


def _one_of(*values: str) -> _Check:
    def check(name: str, value: object) -> None:
        if not (isinstance(value, str) and value in values):
            raise ValueError(f"{name} must be one of {', '.join(values)}, got {excerpt(value)}")

    return check


def _flag_or_none(name: str, value: object) -> None:
    require_flag(name, value, or_none=True)


def _rates(name: str, rates: object) -> None:
    some = isinstance(rates, tuple | list) and len(rates) > 0 and all(is_finite_number(q) and q >= 0 for q in rates)
    # Experts are named by their rates.
    if not (some and len({f"{float(q):g}" for q in rates}) == len(rates)):  # type: ignore[attr-defined,arg-type]
        raise ValueError(f"{name} must be a tuple of different finite numbers from 0 up, got {excerpt(rates)}")


def _schedule(name: str, schedule: object) -> None:
    # River cannot clone an empty tuple.
    some = isinstance(schedule, tuple | list) and len(schedule) > 0 and all(is_whole(n) and n > 0 for n in schedule)
    if not (some or schedule is None):
        raise ValueError(f"{name} must be None or a tuple of whole numbers from 1 up, got {excerpt(schedule)}")


_CHECKS: dict[str, _Check] = {
    **{name: _component(kind) for name, kind in (("kernel", Kernel), ("step", Scheduler))},
    "growth": _component_of("streamkernel.growth", "Growth"),
    "variance": _component_of("streamkernel.gaussian_process", "VarianceEstimator"),
    "solver": _component_of("streamkernel.window.linear_model", "LinearSolver"),
    **dict.fromkeys(("n_features", "max_inputs", "max_labels", "max_targets"), _whole(1)),
    **dict.fromkeys(("buffer_size", "tree_window", "every"), _whole(1)),
    **dict.fromkeys(("n_trees", "memory", "cache_bytes"), _whole(0)),
    "max_classes": _whole(2),
    "window": _whole(1, MOST_WINDOW),
    "batch_size": _whole(1, MOST_AT_ONCE),
    "block_size": _whole_or_none(1, MOST_AT_ONCE),
    "blocks_per_step": _whole_or_none(1, MOST_BLOCKS),
    **dict.fromkeys(("standardize", "precondition", "quasi_random"), _flag_or_none),
    **dict.fromkeys(("average", "normalize_y", "with_noise"), require_flag),
    "regularization": _number("a number from 0 up", lambda nu: nu >= 0),
    "ridge": _number(f"a finite number of at least {LEAST_RIDGE:g}", lambda ridge: ridge >= LEAST_RIDGE),
    "drift_rate": _number("a number from 0 to 1", lambda rate: 0 <= rate <= 1),
    "drift_rates": _rates,
    "metric_schedule": _schedule,
    "dtype": _one_of("float32", "float64"),
    "seed": lambda _, value: require_seed(value),
}


def check_arguments(estimator: Any) -> None:
    """Check the constructor's arguments that mean the same in every estimator; ValueError."""
    for name in estimator._get_params():
        if check := _CHECKS.get(name):
            check(name, getattr(estimator, name))


def inputs_of(estimator: Any, kernel: Kernel) -> Inputs:
    """Fresh inputs of an estimator, standardized if it or its kernel asks for that."""
    standardize = kernel.standardizes if estimator.standardize is None else bool(estimator.standardize)
    if standardize and kernel.domain is not None:
        raise ValueError(
            f"standardize=True shifts inputs below {kernel.domain.least:g}, which {kernel!r} does not accept: "
            "leave standardize out"
        )
    return Inputs(estimator.max_inputs, standardize, kernel.domain)


def head_columns(estimator: Any) -> tuple[Inputs, AdaptiveFeatures]:
    """Fresh inputs and columns of an estimator with least-squares heads on random features."""
    kernel = require_fourier(estimator.kernel or Gaussian(), type(estimator).__name__)
    return inputs_of(estimator, kernel), AdaptiveFeatures(kernel, int(estimator.n_features), new_seed(estimator.seed))
