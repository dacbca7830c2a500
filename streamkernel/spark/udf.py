"""Predictions as a column: a trained model as a function of Spark's that each executor applies to its rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pandas as pd
from pyspark import cloudpickle
from pyspark.sql import Column
from pyspark.sql import functions as F

from streamkernel.estimators.base import StreamEstimator
from streamkernel.spark.executors import freeze_imported

__all__ = ["predict_udf"]

_TYPES = {"int": "long", "float": "double", "str": "string", "bool": "boolean"}


def predict_udf(model: StreamEstimator, result: str | None = None) -> Callable[..., Column]:
    """Return a function of columns that predicts with the current state of a model.

    Parameters
    ----------
    model
        A trained estimator. The executors receive it once, and later learning does not reach them.
    result
        The type of the predictions: "double", "long", "boolean" or "string". None (the default) is the type of the
        labels that have a probability now, and "double" for numbers and scores.

    Returns
    -------
    A function of one column, a struct of the inputs by name. It returns a column of predictions: the number, the score,
    or the most probable label (null before the first label).

    Raises
    ------
    TypeError
        `model` is not an estimator.
    ValueError
        The predictions have several types and `result` is None, or they cannot have the type `result`.

    Examples
    --------
    ::

        predict = predict_udf(model)
        scored = df.withColumn("prediction", predict(F.struct("temperature", "humidity")))

    """
    _check_estimator(model)
    kind = _type_of(model, result)
    data = cloudpickle.dumps(model)
    method = "predict_many" if hasattr(model, "predict_many") else "score_many"

    def predicted(batches: Iterator[pd.DataFrame]) -> Iterator[pd.Series]:
        restored = cloudpickle.loads(data)
        freeze_imported()  # now that the model has imported its modules
        for X in batches:
            if not isinstance(X, pd.DataFrame):
                raise ValueError("the inputs must be one column, a struct of them: predict(F.struct('a', 'b'))")
            values = list(getattr(restored, method)(X))
            yield pd.Series([str(v) if kind == "string" and v is not None else v for v in values], dtype=_dtype(kind))

    predicted.__annotations__ = {"batches": Iterator[pd.DataFrame], "return": Iterator[pd.Series]}
    made: Callable[..., Column] = F.pandas_udf(predicted, kind)
    return made


def _dtype(kind: str) -> str:
    return {"double": "float64", "long": "Int64", "boolean": "boolean"}.get(kind, "object")


def _check_estimator(model: Any) -> None:
    if isinstance(model, type):
        raise TypeError(f"the model is the class {model.__name__}: pass a trained instance")
    if not isinstance(model, StreamEstimator):
        raise TypeError(f"{type(model).__name__} is not an estimator of streamkernel: pass a trained one")


def _type_of(model: Any, result: str | None) -> str:
    """Return the type of the predictions; ValueError where they cannot have it."""
    if result is not None and result not in _TYPES.values():
        names = ", ".join(map(repr, sorted(_TYPES.values())))
        raise ValueError(f"result must be one of {names}, got {result!r}")
    if getattr(model, "classes", None) is None:
        if result in ("long", "boolean"):
            raise ValueError(f"{type(model).__name__} predicts numbers, not {result}: set result='double'")
        return result or "double"
    labels = list(model.predict_proba_one({}))  # `classes` may have the other of two sides, which did not come yet
    kinds = {type(label).__name__ for label in labels}
    if result is None and (len(kinds) > 1 or not kinds <= _TYPES.keys()):
        raise ValueError(
            f"the labels are of the types {', '.join(sorted(kinds))}: set result, the type of the predictions"
        )
    kind = result or (_TYPES[kinds.pop()] if kinds else "string")
    for label in labels:
        if not _fits(label, kind):
            raise ValueError(f"the label {label!r} cannot be of the type {kind}: set result='string'")
    return kind


def _fits(label: Any, kind: str) -> bool:
    if kind in ("string", "boolean"):
        return kind == "string" or isinstance(label, bool)
    return isinstance(label, int | float) and (kind == "double" or (label == int(label) and abs(label) < 2**63))
