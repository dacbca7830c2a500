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
LEAST_SQUARES = [KernelLeastSquaresClassifier, KernelLeastSquaresRegressor]

WRONG = [
    (
        "kernel",
        "gaussian",
        r"kernel must be None or a Kernel such as streamkernel.kernels.Gaussian\(\), got 'gaussian'",
    ),
    ("kernel", Gaussian, r"kernel must be None or a Kernel such as streamkernel.kernels.Gaussian\(\), got <class"),
    ("growth", "cdsg", r"growth must be None or a Growth such as streamkernel.growth.CDSG\(\), got 'cdsg'"),
    ("growth", CDSG, r"growth must be None or a Growth such as streamkernel.growth.CDSG\(\), got <class"),
    ("step", 0.1, r"step must be None or a Scheduler such as river.optim.schedulers.Constant\(0.1\), got 0.1"),
    ("loss", "log", r"loss must be None or a .*Loss such as river.optim.losses.(Hinge|Huber)\(\), got 'log'"),
    ("block_size", 0, "block_size must be a whole number of at least 1, got 0"),
    ("block_size", 1.5, "block_size must be a whole number of at least 1, got 1.5"),
    ("block_size", True, "block_size must be a whole number of at least 1, got True"),
    ("block_size", "8", "block_size must be a whole number of at least 1, got '8'"),
    ("batch_size", 0, "batch_size must be a whole number of at least 1, got 0"),
    ("batch_size", "32", "batch_size must be a whole number of at least 1, got '32'"),
    ("max_features", 31, "max_features must be a whole number of at least 32, got 31"),
    ("max_features", 0, "max_features must be a whole number of at least 32, got 0"),
    ("max_features", math.inf, "max_features must be a whole number of at least 32, got inf"),
    ("regularization", -1e-9, "regularization must be a number from 0 up, got -1e-09"),
    ("regularization", math.nan, "regularization must be a number from 0 up, got nan"),
    ("regularization", math.inf, "regularization must be a number from 0 up, got inf"),
    ("regularization", "0", "regularization must be a number from 0 up, got '0'"),
    ("regularization", None, "regularization must be a number from 0 up, got None"),
    ("standardize", "no", "standardize must be True, False or None, got 'no'"),
    ("standardize", 1, "standardize must be True, False or None, got 1"),
    ("max_inputs", 0, "max_inputs must be a whole number of at least 1, got 0"),
    ("max_inputs", None, "max_inputs must be a whole number of at least 1, got None"),
    ("cache_bytes", -1, "cache_bytes must be a whole number of at least 0, got -1"),
    ("cache_bytes", 1e6, "cache_bytes must be a whole number of at least 0, got 1000000.0"),
    ("dtype", "float16", "dtype must be one of float32, float64, got 'float16'"),
    ("dtype", np.float32, "dtype must be one of float32, float64, got <class"),
    ("dtype", ["float32"], r"dtype must be one of float32, float64, got \['float32'\]"),
    ("seed", "1", "seed must be a whole number or None, got '1'"),
    ("seed", 1.0, "seed must be a whole number or None, got 1.0"),
    ("seed", True, "seed must be a whole number or None, got True"),
    ("precondition", "yes", "precondition must be True, False or None, got 'yes'"),
    ("precondition", 1, "precondition must be True, False or None, got 1"),
    ("blocks_per_step", 0, "blocks_per_step must be a whole number of at least 1, got 0"),
    ("blocks_per_step", True, "blocks_per_step must be a whole number of at least 1, got True"),
    ("average", None, "average must be True or False, got None"),
    ("average", 1, "average must be True or False, got 1"),
]
_RIDGE = "ridge must be a finite number of at least 1e-09, got"
_RATES = "drift_rates must be a tuple of different finite numbers from 0 up, got"
_SCHEDULE = "metric_schedule must be None or a tuple of whole numbers from 1 up, got"
ADAPTIVE_WRONG = [
    (
        "kernel",
        "gaussian",
        r"kernel must be None or a Kernel such as streamkernel.kernels.Gaussian\(\), got 'gaussian'",
    ),
    ("kernel", Gaussian, r"kernel must be None or a Kernel such as streamkernel.kernels.Gaussian\(\), got <class"),
    *(
        (name, value, f"{name} must be a whole number of at least 1, got {value}")
        for name in ("n_features", "buffer_size", "max_inputs")
        for value in (0, -3, 1.5, True, None, math.nan)
    ),
    *(
        ("tree_window", value, f"tree_window must be a whole number of at least 1, got {value}")
        for value in (0, -3, 1.5, True, None)
    ),
    *(
        (name, value, f"{name} must be a whole number of at least 0, got {value}")
        for name in ("n_trees", "memory", "lags")
        for value in (-1, 1.5, True, None)
    ),
    ("lags", 1_001, r"lags must be a whole number of at most 1(,000)?, got 1001"),
    *(
        ("max_bytes", value, f"max_bytes must be a whole number of at least 16384, got {value}")
        for value in (0, 16_383, 1e6, True)
    ),
    *(("ridge", value, f"{_RIDGE} {value!r}") for value in (0, -0.1, 1e-10, math.nan, math.inf, True, None, "1")),
    ("drift_rates", (), rf"{_RATES} \(\)"),
    ("drift_rates", 0.1, f"{_RATES} 0.1"),
    ("drift_rates", None, f"{_RATES} None"),
    ("drift_rates", "ab", f"{_RATES} 'ab'"),
    ("drift_rates", {0.1}, f"{_RATES} {{0.1}}"),
    ("drift_rates", (0.1, 0.1), rf"{_RATES} \(0.1, 0.1\)"),
    *(
        ("drift_rates", (0.0, value), rf"{_RATES} \(0.0, {value!r}\)")
        for value in (-1e-9, math.nan, math.inf, True, None, "1")
    ),
    ("metric_schedule", (), rf"{_SCHEDULE} \(\)"),
    ("metric_schedule", 100, f"{_SCHEDULE} 100"),
    ("metric_schedule", "100", f"{_SCHEDULE} '100'"),
    ("metric_schedule", range(3), rf"{_SCHEDULE} range\(0, 3\)"),
    *(("metric_schedule", (5, n), rf"{_SCHEDULE} \(5, {n!r}\)") for n in (0, -1, 1.0, True, None, "6")),
    ("standardize", "no", "standardize must be True, False or None, got 'no'"),
    ("standardize", 1, "standardize must be True, False or None, got 1"),
    ("seed", "1", "seed must be a whole number or None, got '1'"),
    ("seed", 1.0, "seed must be a whole number or None, got 1.0"),
    ("seed", True, "seed must be a whole number or None, got True"),
]


def test_out_of_range(subtests):
    for model in BOTH:
        for name, value, message in WRONG:
            with subtests.test(model=model, name=name, value=value, message=message):
                with pytest.raises(ValueError, match=f"^{message}") as error:
                    model(**{name: value})
                assert "\n" not in str(error.value)


def test_out_of_range_of_the_adaptive(subtests):
    for model in ADAPTIVE:
        for name, value, message in ADAPTIVE_WRONG:
            with subtests.test(model=model, name=name, value=value, message=message):
                with pytest.raises(ValueError, match=f"^{message}") as error:
                    model(**{name: value})
                assert "\n" not in str(error.value)


@pytest.mark.parametrize("value", [1, 0, -5, 2.5, None, True])
@pytest.mark.parametrize("model", [KernelClassifier, AdaptiveKernelClassifier, KernelLeastSquaresClassifier])
def test_max_classes(value, model):
    with pytest.raises(ValueError, match=f"^max_classes .* 2, got {value}$"):
        model(max_classes=value)


@pytest.mark.parametrize("model", BOTH)
def test_every_argument_has_a_wrong_value_here(model):
    names = set(inspect.signature(model).parameters)
    assert names == {name for name, _, _ in WRONG} | ({"max_classes"} if model is KernelClassifier else set())


@pytest.mark.parametrize("value", ["mode", "", None, 0.5, True, ["mean"]])
def test_predicts(value):
    with pytest.raises(ValueError, match=f"^predicts .*'mean'.*'median'.* got {re.escape(repr(value))}$"):
        AdaptiveKernelRegressor(predicts=value)


@pytest.mark.parametrize("model", ADAPTIVE)
def test_every_adaptive_argument_has_a_wrong_value_here(model):
    names = set(inspect.signature(model).parameters)
    own = {"max_classes"} if model is AdaptiveKernelClassifier else {"predicts"}
    assert names == {name for name, _, _ in ADAPTIVE_WRONG} | own


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
