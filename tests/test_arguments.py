"""Every argument out of its range is one clear ValueError that names it."""

import inspect
import itertools
import math
import re

import numpy as np
import pytest
from river.optim import schedulers

from streamkernel import (
    AdaptiveKernelClassifier,
    AdaptiveKernelRegressor,
    KernelClassifier,
    KernelLeastSquaresClassifier,
    KernelLeastSquaresRegressor,
    KernelRegressor,
    losses,
)
from streamkernel.growth import CDSG, DSG, UDSG
from streamkernel.kernels import Gaussian

BOTH = [KernelClassifier, KernelRegressor]
ADAPTIVE = [AdaptiveKernelClassifier, AdaptiveKernelRegressor]

# Both families' arguments come from one table of checks, so a value is wrong for every model that takes the argument.
_KERNEL = r"kernel must be None or a Kernel such as streamkernel.kernels.Gaussian\(\), got"
_GROWTH = r"growth must be None or a Growth such as streamkernel.growth.CDSG\(\), got"
_STEP = r"step must be None or a Scheduler such as river.optim.schedulers.Constant\(0.1\), got"
_RATES = "drift_rates must be a tuple of different finite numbers from 0 up, got"
_SCHEDULE = "metric_schedule must be None or a tuple of whole numbers from 1 up, got"
_WRONG = [
    (("kernel",), ("gaussian", Gaussian), _KERNEL),
    (("growth",), ("cdsg", CDSG), _GROWTH),
    (("step",), (0.1,), _STEP),
    (("loss",), ("log",), r"loss must be None or a .*Loss such as river.optim.losses.(Hinge|Huber)\(\), got"),
    (
        ("block_size", "batch_size", "blocks_per_step", "max_inputs", "n_features", "buffer_size", "tree_window"),
        (0, -3, 1.5, True, "8", math.nan),
        "{} must be a whole number of at least 1, got",
    ),
    (
        ("max_inputs", "n_features", "buffer_size", "tree_window"),
        (None,),
        "{} must be a whole number of at least 1, got",
    ),
    (
        ("cache_bytes", "n_trees", "memory", "lags"),
        (-1, 1.5, True, None),
        "{} must be a whole number of at least 0, got",
    ),
    (("lags",), (1_001,), r"lags must be a whole number of at most 1(,000)?, got"),
    (("max_features",), (31, 0, math.inf), "max_features must be a whole number of at least 32, got"),
    (("max_bytes",), (0, 16_383, 1e6, True), "max_bytes must be a whole number of at least 16384, got"),
    (("max_classes",), (1, 0, -5, 2.5, None, True), "max_classes must be a whole number of at least 2, got"),
    (("regularization",), (-1e-9, math.nan, math.inf, "0", None), "regularization must be a number from 0 up, got"),
    (
        ("ridge",),
        (0, -0.1, 1e-10, math.nan, math.inf, True, None, "1"),
        "ridge must be a finite number of at least 1e-09, got",
    ),
    (("drift_rates",), ((), 0.1, None, "ab", {0.1}, (0.1, 0.1)), _RATES),
    (("drift_rates",), [(0.0, rate) for rate in (-1e-9, math.nan, math.inf, True, None, "1")], _RATES),
    (("metric_schedule",), ((), 100, "100", range(3)), _SCHEDULE),
    (("metric_schedule",), [(5, n) for n in (0, -1, 1.0, True, None, "6")], _SCHEDULE),
    (("standardize", "precondition"), ("no", 1), "{} must be True, False or None, got"),
    (("average",), (None, 1), "average must be True or False, got"),
    (("dtype",), ("float16", np.float32, ["float32"]), "dtype must be one of float32, float64, got"),
    (("seed",), ("1", 1.0, True), "seed must be a whole number or None, got"),
    (("predicts",), ("mode", "", None, 0.5, True, ["mean"]), "predicts .*'mean'.*'median'.* got"),
]
WRONG = [
    (name, value, f"{message.replace('{}', name)} {re.escape(repr(value))}")
    for names, values, message in _WRONG
    for name in names
    for value in values
]


@pytest.mark.parametrize("model", [*BOTH, *ADAPTIVE, KernelLeastSquaresClassifier, KernelLeastSquaresRegressor])
def test_out_of_range(model, subtests):
    arguments = set(inspect.signature(model).parameters)
    assert arguments <= {name for name, _, _ in WRONG}
    for name, value, message in WRONG:
        if name in arguments:
            with subtests.test(name=name, value=value):
                with pytest.raises(ValueError, match=f"^{message}$") as error:
                    model(**{name: value})
                assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"grow": 0}, "grow must be a whole number of at least 1, got 0"),
        ({"grow": 1.5}, "grow must be a whole number of at least 1, got 1.5"),
        ({"grow": "1"}, "grow must be a whole number of at least 1, got '1'"),
        ({"reuse": -1}, "reuse must be a whole number of at least 0, got -1"),
        ({"reuse": 0.5}, "reuse must be a whole number of at least 0, got 0.5"),
    ],
    ids=str,
)
def test_grow_and_reuse(given, message):
    with pytest.raises(ValueError, match=f"^{message}$"):
        UDSG(**given)


EDGES = [
    {"block_size": 1, "batch_size": 1, "max_features": 1},
    {"max_features": None},
    {"max_features": 33},
    {"regularization": 0},
    {"regularization": 5.0, "step": schedulers.Constant(0.2)},
    {"max_inputs": 1},
    {"cache_bytes": 0},
    {"seed": 0},
    {"seed": -1},
    {"seed": 2**64},
    {"seed": 10**30},
    {"block_size": np.int64(4), "seed": np.uint64(2**63), "regularization": np.float32(1e-3)},
    {"growth": CDSG(cap=math.inf)},
    {"growth": UDSG(grow=1, reuse=0)},
    {"growth": UDSG(grow=3, reuse=np.int8(2))},
    {"step": schedulers.InverseScaling(0.5)},
    {"kernel": Gaussian(1e-3)},
    {"kernel": Gaussian(1e6)},
    {"kernel": Gaussian(np.float32(0.5))},
    {"loss": None},
]


@pytest.mark.parametrize(("model", "given"), list(zip(itertools.cycle(BOTH), EDGES, strict=False)), ids=str)
@pytest.mark.filterwarnings("ignore:inputs past max_inputs")
def test_the_edges_of_the_ranges_learn(model, given):
    learner = model(**given)
    xs = [{"a": i / 50, "b": i % 7} for i in range(220)]
    outcome = learner.advance(xs, [i % 2 for i in range(220)])
    assert np.isfinite(outcome.losses).all()
    assert len(learner.state_digest()) == 64
    assert learner.n_steps == 220 // (4 if hasattr(learner, "expert_weights") else learner.batch_size)
    if learner.max_features is not None:
        assert learner.n_features <= learner.max_features


def test_arguments_are_stored_under_their_own_names():
    kernel, loss, growth = Gaussian(2.0), losses.Log(), DSG()
    model = KernelClassifier(kernel=kernel, loss=loss, growth=growth, seed=5, block_size=32)
    assert (model.kernel, model.loss, model.growth, model.seed, model.block_size) == (kernel, loss, growth, 5, 32)
    # What is left open stays open, whatever it comes to.
    model = KernelClassifier(seed=5)
    model.learn_one({"a": 1.0}, True)
    assert (model.block_size, model.precondition, model.blocks_per_step, model.average) == (None, None, None, False)
    assert KernelClassifier().kernel is None
    assert KernelClassifier().seed is None


def _fresh_and_read_only(model):
    learner = model(seed=1)
    for name in dir(type(learner)):
        if isinstance(getattr(type(learner), name), property) and not name.startswith("_"):
            with pytest.raises(AttributeError):
                setattr(learner, name, 1)
    return learner


@pytest.mark.parametrize("model", BOTH)
def test_what_a_user_would_plot_is_read_only(model):
    learner = _fresh_and_read_only(model)
    assert (learner.n_records, learner.n_features, learner.n_blocks, learner.n_grown, learner.n_reused) == (0,) * 5
    assert (learner.n_steps, learner.gamma_0, learner.bandwidth, learner.input_names) == (0, 0, 0, [])
    assert math.isnan(learner.last_check_margin)


@pytest.mark.parametrize("blocks", [None, 3])
@pytest.mark.parametrize("model", BOTH)
def test_what_a_user_would_plot_adds_up(model, blocks):
    """Of plain steps, and of preconditioned ones of several blocks."""
    steps = {"precondition": False} if blocks is None else {"blocks_per_step": blocks}
    learner = model(seed=1, block_size=8, batch_size=4, max_features=1024, **steps)
    xs = [{"a": math.sin(i), "b": math.cos(3 * i)} for i in range(430)]
    learner.advance(xs, [x["a"] > 0 for x in xs])
    assert learner.n_records == 430
    assert learner.n_steps == 107
    assert learner.n_grown + learner.n_reused == 107 * (blocks or 1)
    assert learner.n_blocks == learner.n_grown
    assert learner.n_features == 8 * learner.n_blocks
    assert learner.memory_bytes > 0
    assert learner.n_reused > 0
    assert learner.last_check_margin > -1e-12 if blocks is None else math.isnan(learner.last_check_margin)
    assert learner.gamma_0 > 0
    assert 0 < learner.bandwidth < 3
