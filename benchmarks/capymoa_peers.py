"""CapyMOA's learners with River's interface; they need the extra `peers` and a Java runtime.

CapyMOA asks for a schema before the first record. Its inputs are those of the first record (numbers: the benchmark
encodes strings), its classes are told apart by number, in the order in which they come: all that must be known
beforehand is how many there are.
"""

import gc
import os
import shutil
from collections.abc import Callable
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import numpy as np

#: Kinds of learner by their names in `capymoa.classifier` and `capymoa.regressor`.
CLASSIFIERS = {
    "ARF": "AdaptiveRandomForestClassifier",
    "SRP": "StreamingRandomPatches",
    "SGBT": "StreamingGradientBoostedTrees",
    "LeveragingBagging": "LeveragingBagging",
    "SAMkNN": "SAMkNN",
}
REGRESSORS = {"ARF": "AdaptiveRandomForestRegressor", "SGBR": "StreamingGradientBoostedRegression", "SOKNL": "SOKNL"}

#: CapyMOA's own arguments of the Java machine, and one thread that collects garbage: CPU seconds are counted.
JVM_ARGUMENTS = "-Xmx8g -Xss10M -XX:+UseSerialGC"


def missing() -> str:
    """Why CapyMOA cannot run here; empty where it can."""
    try:
        version("capymoa")
    except PackageNotFoundError:
        return "capymoa is not installed (the extra peers)"
    if "JAVA_HOME" not in os.environ and shutil.which("java") is None:
        return "CapyMOA needs Java, of which there is none"
    return ""


def source() -> str:
    """The version of CapyMOA, empty without it."""
    try:
        return f"capymoa {version('capymoa')}"
    except PackageNotFoundError:
        return ""


def library(name: str) -> Any:
    """A module of CapyMOA's; the first one starts the Java machine, which takes seconds."""
    os.environ.setdefault("CAPYMOA_JVM_ARGS", JVM_ARGUMENTS)
    return import_module(f"capymoa.{name}")


def heap() -> int:
    """Bytes of the Java heap in use, what is garbage in Python and in Java left out."""
    gc.collect()
    runtime = import_module("jpype").JClass("java.lang.Runtime").getRuntime()
    runtime.gc()
    return int(runtime.totalMemory() - runtime.freeMemory())


class Learner:
    """What the two kinds share: the schema, made of the first record, and the memory."""

    def __init__(self, name: str, module: str, seed: int, labels: list[str]) -> None:
        self._make: Callable[..., Any] = getattr(library(module), name)
        self._core = library("core")
        self._seed, self._labels = seed, labels
        self._names: dict[Any, None] = {}  # in their order
        self._schema: Any = None
        self._learner: Any = None
        self._before = heap()

    def _values(self, x: dict[Any, float]) -> Any:
        """The inputs in their order, those absent as NaN, which is MOA's missing value."""
        if self._learner is None:
            self._start(list(x))
        if not x.keys() <= self._names.keys():
            raise ValueError("an input that the first record did not have")
        return np.array([x.get(name, np.nan) for name in self._names])

    def _start(self, names: list[Any]) -> None:
        self._names = dict.fromkeys(names)
        inputs = [f"input {i}" for i in range(len(names))]
        categories = {"target": self._labels} if self._labels else None
        self._schema = library("stream").Schema.from_custom([*inputs, "target"], "target", categories)
        self._learner = self._make(schema=self._schema, random_seed=self._seed)

    @property
    def _raw_memory_usage(self) -> int:
        """By how much the Java heap grew: Java does not write every learner, and none says its size."""
        return max(heap() - self._before, 0)


class Classifier(Learner):
    """A classifier of CapyMOA's; labels have numbers in the order in which they come."""

    def __init__(self, kind: str, seed: int, n_classes: int) -> None:
        super().__init__(CLASSIFIERS[kind], "classifier", seed, [str(i) for i in range(n_classes)])
        self._numbers: dict[Any, int] = {}

    def predict_proba_one(self, x: dict[Any, float]) -> dict[Any, float]:
        values = self._values(x)
        chances = self._learner.predict_proba(self._core.Instance.from_array(self._schema, values))
        return {} if chances is None else dict(zip(self._numbers, chances.tolist(), strict=False))

    def learn_one(self, x: dict[Any, float], y: Any) -> None:
        values, number = self._values(x), self._numbers.setdefault(y, len(self._numbers))
        if number >= len(self._labels):
            raise ValueError(f"more than the {len(self._labels)} classes that were announced")
        self._learner.train(self._core.LabeledInstance.from_array(self._schema, values, number))


class Regressor(Learner):
    """A regressor of CapyMOA's."""

    def __init__(self, kind: str, seed: int) -> None:
        super().__init__(REGRESSORS[kind], "regressor", seed, [])

    def predict_one(self, x: dict[Any, float]) -> float:
        values = self._values(x)
        return float(self._learner.predict(self._core.Instance.from_array(self._schema, values)))

    def learn_one(self, x: dict[Any, float], y: float) -> None:
        values = self._values(x)
        self._learner.train(self._core.RegressionInstance.from_array(self._schema, values, float(y)))
