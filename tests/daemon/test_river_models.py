"""River's models in checkpoints: the list of names fits the installed River, and the table in the docs is true."""

from __future__ import annotations

import importlib
import inspect
import os
import pkgutil
import random
import subprocess
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import river
from river import base, drift, metrics, optim, proba, sketch, stats, tree, utils

from streamkernel.daemon.checkpoints import allowed, listed_names
from streamkernel.daemon.checkpoints.payload import LEARNED_ARGUMENTS, dump_model
from streamkernel.daemon.checkpoints.shims import SHIMS
from streamkernel.daemon.checkpoints.unpickler import loads

ROOT = Path(__file__).parents[2]

#: Files, the network, other libraries, tools for evaluation and display: nothing that a model keeps.
LEFT_OUT = (
    "river.api",
    "river.bandit.datasets",
    "river.bandit.envs",
    "river.base.typing",
    "river.checks",
    "river.compat",
    "river.conftest",
    "river.datasets",
    "river.drift.datasets",
    "river.evaluate",
    "river.stream",
    "river.utils.context_managers",
    "river.utils.pretty",
)
NOT_LISTED = {
    # knows its leaves by their addresses in memory
    ("river.feature_extraction.kernel_approx", "RandomTreesEmbedding"),
    # only a base class, and a deque
    ("river.time_series.holt_winters", "Component"),
}


def modules() -> Iterator[Any]:
    for info in pkgutil.walk_packages(river.__path__, "river."):
        if not info.name.startswith(LEFT_OUT) and "test_" not in info.name:
            yield importlib.import_module(info.name)


def classes() -> set[allowed.Name]:
    """River's classes that can have instances, wherever they are defined."""
    found = set()
    for module in modules():
        for cls in vars(module).values():
            if (
                inspect.isclass(cls)
                and cls.__module__ == module.__name__
                and not inspect.isabstract(cls)
                and not issubclass(cls, BaseException | type)
                and not getattr(cls, "_is_protocol", False)
            ):
                found.add((cls.__module__, cls.__qualname__))
    return found


def test_the_list_of_names_fits_the_installed_river() -> None:
    listed = listed_names.RIVER_CLASSES | {name for name in SHIMS if name[0].startswith("river.")}
    python = {name for name in listed if not name[0].startswith("river._river_rust")}
    found = classes() - NOT_LISTED
    assert sorted(found - python) == [], (
        "new in River: look at them, then list them in streamkernel/daemon/checkpoints/listed_names.py"
    )
    assert sorted(python - found) == [], (
        "gone from River: take them off the list in streamkernel/daemon/checkpoints/listed_names.py"
    )


def test_every_name_is_there_and_itself() -> None:
    names = {
        *listed_names.RIVER_CLASSES,
        *listed_names.RIVER_NESTED_CLASSES,
        *listed_names.TYPES,
        *listed_names.FUNCTIONS,
    }
    for module, name in names | set(SHIMS) | listed_names.PARTIAL_TARGETS | listed_names.METHODS:
        assert callable(allowed.resolve(module, name))


def test_listed_classes_are_made_empty_by_python_itself() -> None:
    for module, name in listed_names.RIVER_CLASSES | listed_names.RIVER_NESTED_CLASSES:
        cls = allowed.resolve(module, name)
        assert cls.__new__ is object.__new__
        assert type(object.__new__(cls)) is cls
        assert not module.startswith(LEFT_OUT)


def test_no_listed_class_holds_a_way_out() -> None:
    """A class that is not River's, or has an `__reduce__` or `__del__` of its own, needs a look before it is listed."""
    for module, name in listed_names.RIVER_CLASSES | listed_names.RIVER_NESTED_CLASSES:
        cls = allowed.resolve(module, name)
        for one in cls.__mro__[:-1]:
            assert one.__module__.split(".")[0] in ("river", "abc", "collections", "typing"), (cls, one)
            assert not {"__reduce__", "__reduce_ex__", "__del__", "__setattr__", "__getattribute__"} & set(vars(one))


def test_parts_of_trees_can_be_made_empty_and_filled_later() -> None:
    flat = [allowed.resolve(*name) for name in listed_names.RIVER_CLASSES if allowed.is_flat(allowed.resolve(*name))]
    assert tree.splitter.ebst_splitter.EBSTNode in flat
    for cls in flat:
        assert not hasattr(cls, "__setstate__")
        assert cls.__hash__ in (object.__hash__, None)


def test_arguments_that_learning_writes_over_exist() -> None:
    found = {cls.__name__: cls for module in modules() for cls in vars(module).values() if inspect.isclass(cls)}
    for dotted in LEARNED_ARGUMENTS:
        name, _, argument = dotted.partition(".")
        # An abstract class in the middle may leave the argument to those below it.
        family = [cls for cls in found.values() if issubclass(cls, found[name])]
        assert any(argument in inspect.signature(cls).parameters for cls in family), dotted


def parts() -> Iterator[Any]:
    """What models hold: statistics, metrics, detectors, optimizers, ... with the arguments they have by default."""
    for module in (drift, drift.binary, metrics, optim, optim.losses, proba, sketch, stats):
        for name in module.__all__:
            cls = getattr(module, name, None)  # River exports a name that it does not have
            if inspect.isclass(cls) and issubclass(cls, base.Base) and not inspect.isabstract(cls):
                try:
                    made = [cls(**arguments) for arguments in cls._unit_test_params()]
                except TypeError:
                    continue  # it needs arguments
                yield from made
    yield from (stats.RollingQuantile(0.5, 7), stats.RollingMode(7), stats.RollingIQR(7), stats.AutoCorr(2))
    yield from (stats.RollingMax(7), stats.RollingPeakToPeak(7), stats.BayesianMean(0, 3))
    yield from (utils.Rolling(stats.Mean, window_size=7), utils.Rolling(metrics.Accuracy, window_size=7))
    yield from (optim.schedulers.Constant(0.1), optim.schedulers.InverseScaling(0.1))
    yield from (optim.schedulers.Optimal(optim.losses.Hinge()), optim.initializers.Normal(seed=1))


def update(part: Any, rng: random.Random) -> None:
    y, other = rng.random() < 0.5, rng.random()
    if isinstance(part, metrics.Silhouette):
        part.update({"a": other}, 0, {0: {"a": 0.0}, 1: {"a": 1.0}})
    elif isinstance(part, metrics.base.RegressionMetric | stats.base.Bivariate):
        part.update(rng.random(), other)
    elif isinstance(part, metrics.base.Metric) or isinstance(getattr(part, "obj", None), metrics.base.Metric):
        part.update(y, {True: other, False: 1 - other} if not part.requires_labels else other > 0.5)
    elif type(part).__module__.startswith("river.drift.binary."):
        part.update(y)
    elif isinstance(part, proba.MultivariateGaussian):
        part.update({"a": rng.random(), "b": other})
    elif isinstance(part, sketch.NUnique | sketch.Set):
        part.update(f"{other:.1f}")
    elif hasattr(part, "update"):
        part.update(other)


def test_what_models_hold_comes_back() -> None:
    warnings.simplefilter("ignore")
    seen = 0
    for part in parts():
        rng = random.Random(1)
        for _ in range(60):
            update(part, rng)
        again = loads(dump_model(part).partition(b"\n")[2])
        assert type(again) is type(part)
        assert repr(again) == repr(part)  # which tells the value as well
        seen += 1
    assert seen > 100


@pytest.mark.long
def test_the_table_in_the_docs_says_what_happens() -> None:
    """Every estimator that River exports learns, is written, and is restored by another process."""
    command = [sys.executable, str(ROOT / "benchmarks" / "river_checkpoints.py"), "--check"]
    done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "PYTHONWARNINGS": "ignore"})
    assert done.returncode == 0, done.stdout + done.stderr
