"""Every classifier, regressor and anomaly detector of the installed River learns in the daemon, or is refused."""

from __future__ import annotations

import importlib
import inspect
import json
import pkgutil
import random
import warnings
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
import river
from river import (
    base,
    compose,
    dummy,
    imblearn,
    linear_model,
    metrics,
    model_selection,
    preprocessing,
)

from streamkernel.daemon.assembly.model import build_model
from streamkernel.daemon.assembly.plan import prepare
from streamkernel.daemon.base.model import task_of
from streamkernel.daemon.config.problems import ConfigError
from streamkernel.daemon.evaluate import evaluate
from streamkernel.daemon.runtime import run
from streamkernel.daemon.stream.stop import StopSignals
from tests.daemon.conftest import Home

RECORDS = 12
KINDS = base.Classifier, base.Regressor, base.AnomalyDetector, base.SupervisedAnomalyDetector
#: Arguments of those for which River's own tests name none.
GIVEN: dict[type, Any] = {
    compose.TargetTransformRegressor: lambda: {
        "regressor": linear_model.LinearRegression(),
        "func": float,
        "inverse_func": float,
    },
    imblearn.RandomOverSampler: lambda: _sampling(),
    imblearn.RandomSampler: lambda: _sampling(),
    imblearn.RandomUnderSampler: lambda: _sampling(),
    model_selection.SuccessiveHalvingClassifier: lambda: _halving(linear_model.LogisticRegression, metrics.Accuracy()),
    model_selection.SuccessiveHalvingRegressor: lambda: _halving(linear_model.LinearRegression, metrics.MAE()),
    preprocessing.TargetMinMaxScaler: lambda: {"regressor": linear_model.LinearRegression()},
    preprocessing.TargetStandardScaler: lambda: {"regressor": linear_model.LinearRegression()},
}
REFUSED = {
    "EntropySampler": "use the classifier inside it",
    "ISOUPTreeRegressor": "predicts several targets",
}


def _sampling() -> dict[str, Any]:
    return {"classifier": linear_model.LogisticRegression(), "desired_dist": {True: 0.5, False: 0.5}, "seed": 1}


def _halving(kind: type, metric: Any) -> dict[str, Any]:
    return {"models": [kind(l2=0.1), kind(l2=0.2)], "metric": metric, "budget": 100}


def _public() -> Iterator[type]:
    """Yield the public classes of the three kinds, whose arguments may be those of another release."""
    for package in pkgutil.iter_modules(river.__path__):
        if not package.ispkg:
            continue
        module = importlib.import_module(f"river.{package.name}")
        for one in getattr(module, "__all__", ()):
            cls = getattr(module, one, None)
            if inspect.isclass(cls) and issubclass(cls, KINDS) and not inspect.isabstract(cls):
                yield cls


def _made(cls: type) -> Any:
    arguments = GIVEN[cls]() if cls in GIVEN else next(iter(cls._unit_test_params()))  # type: ignore[attr-defined]
    try:
        return cls(**arguments)
    except RuntimeError as error:  # it needs a newer Python
        pytest.skip(str(error))


@pytest.mark.parametrize("cls", sorted(set(_public()), key=lambda cls: cls.__name__), ids=lambda cls: cls.__name__)
def test_it_learns_or_is_refused(home: Home, cls: type) -> None:
    warnings.simplefilter("ignore")  # of what River's compositions think of their own arguments
    model = _made(cls)
    if not issubclass(cls, base.Classifier | base.Regressor) or cls.__name__ in REFUSED:
        with pytest.raises(TypeError, match=REFUSED.get(cls.__name__, "is not one of them")):
            task_of(model)
        return
    draw, of_numbers = random.Random(1), task_of(model) == "regression"
    rows = [{"a": draw.random(), "b": draw.random()} for _ in range(RECORDS)]
    lines = [json.dumps({**row, "y": row["a"] if of_numbers else row["a"] > 0.5}) for row in rows]
    (home.folder / "stream.jsonl").write_text("\n".join(lines))
    placeholder = dummy.StatisticRegressor if of_numbers else dummy.NoChangeClassifier
    path = home.configure(
        source={
            "kind": "jsonl",
            "path": "stream.jsonl",
            "target": "y",
            "target_type": "float" if of_numbers else "bool",
        },
        model=[{f"river.dummy.{placeholder.__name__}": {"statistic": {"river.stats.Mean": {}}} if of_numbers else {}}],
        checkpoint=None,
        predictions=None,
    )
    evaluated = evaluate(replace(prepare(path), models={"": model.clone()}), StopSignals())
    assert evaluated.view.account["learned"] == RECORDS
    account = run(replace(prepare(path), models={"": model})).account
    assert (account["learned"], account["dead"]) == (RECORDS, 0)


@pytest.mark.parametrize("name", ["river.anomaly.HalfSpaceTrees", "river.tree.ISOUPTreeRegressor"])
def test_check_says_why_it_is_refused(name: str) -> None:
    with pytest.raises(ConfigError, match=r"model\[0\]: the last step must be a classifier, a regressor, streamk"):
        build_model([name])
