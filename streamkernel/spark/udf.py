"""Predictions as a column: a trained model as a function of Spark's that each executor applies to its rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pandas as pd
from pyspark import cloudpickle
from pyspark.sql import Column
from pyspark.sql import functions as F

from streamkernel.estimators.base import StreamEstimator
from streamkernel.spark.worker import freeze_imported

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
    kind = _type_of(model) if result is None else result
    _check_type(model, kind)
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
    if not isinstance(model, StreamEstimator):  # as a pipeline is that ends in one
        raise TypeError(f"{type(model).__name__} is not an estimator of streamkernel: pass a trained one")


def _labels_of(model: Any) -> list[Any] | None:
    """The labels that can be predicted by now; None of a model without labels."""
    if getattr(model, "classes", None) is None:
        return None
    return list(model.predict_proba_one({}))  # the other of two sides may be among `classes` for one not seen yet


def _type_of(model: StreamEstimator) -> str:
    labels = _labels_of(model)
    if labels is None:
        return "double"
    kinds = {type(label).__name__ for label in labels}
    if len(kinds) > 1 or not kinds <= _TYPES.keys():
        raise ValueError(
            f"the labels are of the types {', '.join(sorted(kinds))}: set result, the type of the predictions"
        )
    return _TYPES[kinds.pop()] if kinds else "string"


def _check_type(model: StreamEstimator, kind: str) -> None:
    if kind not in _TYPES.values():
        names = ", ".join(map(repr, sorted(_TYPES.values())))
        raise ValueError(f"result must be one of {names}, got {kind!r}")
    labels = _labels_of(model)
    if labels is None and kind not in ("double", "string") and issubclass(type(model), StreamEstimator):
        raise ValueError(f"{type(model).__name__} predicts numbers, not {kind}: set result='double'")
    for label in labels or []:
        if not _fits(label, kind):
            raise ValueError(f"the label {label!r} cannot be of the type {kind}: set result='string'")


def _fits(label: Any, kind: str) -> bool:
    if kind == "string":
        return True
    if kind == "boolean":
        return isinstance(label, bool)
    if kind == "double":
        return isinstance(label, int | float)
    return isinstance(label, int | float) and -(2**63) <= label < 2**63 and label == int(label)
