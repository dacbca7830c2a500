"""Predictions as a column: a trained model as a function of Spark's that each executor applies to its rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pandas as pd
from pyspark import cloudpickle
from pyspark.sql import Column
from pyspark.sql import functions as F

from streamkernel.estimators.base import StreamEstimator

__all__ = ["predict_udf"]

_TYPES = {"int": "long", "float": "double", "str": "string", "bool": "boolean"}


def predict_udf(model: StreamEstimator, result: str | None = None) -> Callable[..., Column]:
    """Make a function of columns that predicts with a model as it is now.

    Parameters
    ----------
    model
        A trained estimator; it is sent to the executors once, and what it learns later is not known there.
    result
        The type of the predictions, "double", "long", "boolean" or "string". None (the default): that of the labels
        known by now, and "double" for numbers and scores.

    Returns
    -------
    A function of one column, a struct of the inputs by their names, that gives the column of the predictions: the most
    probable label, null before the first, the number, or the score.

    Raises
    ------
    ValueError
        The labels known by now are of several types, and no `result` is given.

    Examples
    --------
    ::

        predict = predict_udf(model)
        scored = df.withColumn("prediction", predict(F.struct("temperature", "humidity")))

    """
    kind = result or _type_of(model)
    data = cloudpickle.dumps(model)
    method = "predict_many" if hasattr(model, "predict_many") else "score_many"

    def predicted(batches: Iterator[pd.DataFrame]) -> Iterator[pd.Series]:
        restored = cloudpickle.loads(data)
        for X in batches:
            values = list(getattr(restored, method)(X))
            yield pd.Series([str(v) if kind == "string" and v is not None else v for v in values], dtype=_dtype(kind))

    predicted.__annotations__ = {"batches": Iterator[pd.DataFrame], "return": Iterator[pd.Series]}
    made: Callable[..., Column] = F.pandas_udf(predicted, kind)
    return made


def _dtype(kind: str) -> str:
    return {"double": "float64", "long": "Int64", "boolean": "boolean"}.get(kind, "object")


def _type_of(model: StreamEstimator) -> str:
    labels = getattr(model, "classes", None)
    if labels is None:
        return "double"
    kinds = {type(label).__name__ for label in labels}
    if len(kinds) > 1 or not kinds <= _TYPES.keys():
        raise ValueError(
            f"the labels are of the types {', '.join(sorted(kinds))}: give result, the type of the predictions"
        )
    return _TYPES[kinds.pop()] if kinds else "string"
