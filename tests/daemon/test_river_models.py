"""River's models in checkpoints: the rules fit the installed River, and the table in the docs is true."""

from __future__ import annotations

import inspect
import os
import random
import subprocess
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from river import base, datasets, drift, metrics, optim, proba, sketch, stats, stream, utils

from streamkernel.daemon.checkpoints import allowed
from streamkernel.daemon.checkpoints.payload import dump_model
from streamkernel.daemon.checkpoints.shims import maker_of
from streamkernel.daemon.checkpoints.unpickler import loads

ROOT = Path(__file__).parents[2]


def modules() -> list[Any]:
    """River's modules that are loaded: the reader looks nowhere else."""
    return [module for name, module in sys.modules.items() if name.startswith("river.") and "test_" not in name]


def permitted() -> set[Any]:
    """What of River a payload may name."""
    members = [member for module in modules() for member in vars(module).values()]
    found = {allowed.find(*allowed.name_of(one)) for one in members if inspect.isclass(one) or inspect.isfunction(one)}
    return {one for one in found if one is not None and one.__module__.startswith("river.")}


def test_a_permitted_class_of_river_holds_no_way_out() -> None:
    """A class that is not River's, or has an `__reduce__` or `__del__` of its own, needs a look."""
    classes = [one for one in permitted() if inspect.isclass(one) and not allowed.is_compiled(one)]
    assert len(classes) > 380
    for cls in classes:
        if maker_of(cls) is not None or getattr(cls, "_is_protocol", False):
            continue  # made from numbers alone, or not at all
        assert cls.__new__ is object.__new__, cls
        for one in cls.__mro__[:-1]:
            assert one.__module__.split(".")[0] in ("river", "abc", "collections", "typing"), (cls, one)
            assert not {"__reduce__", "__reduce_ex__", "__del__", "__setattr__", "__getattribute__"} & set(vars(one))


def test_nothing_that_reads_files_or_the_network_is_permitted() -> None:
    kinds = datasets.base.Dataset, stream.Cache
    assert not [one for one in permitted() if inspect.isclass(one) and issubclass(one, kinds)]
    used = {"open", "eval", "exec", "compile", "__import__", "import_module", "system", "urlopen", "connect"}
    functions = [one for one in permitted() if inspect.isfunction(one)]
    functions += [one for cls in permitted() if inspect.isclass(cls) for one in vars(cls).values()]
    assert not [one for one in functions if inspect.isfunction(one) and used & set(one.__code__.co_names)]


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
