"""Targets in any box as a list of Python values: arrays, series, Arrow arrays and lists."""

from typing import Any

import numpy as np
from river.utils.dataframe import into_series


def target_list(y: Any) -> list[Any]:
    """The targets of the rows of a frame as Python values.

    Parameters
    ----------
    y
        A list, tuple or array, a series that narwhals knows (pandas, polars, a chunked array of pyarrow), an array or
        index of pandas, or a `pyarrow.Array`.

    Returns
    -------
    n values; None where a list has None, a series a null, and one of pandas anything that it takes for missing (NaN,
    NA, NaT): such a row is not learned.

    Raises
    ------
    ValueError
        An array does not have one dimension.
    TypeError
        y is none of these.

    Examples
    --------
    >>> import pandas as pd
    >>> target_list(pd.Series([1.5, None]))
    [1.5, None]

    """
    if isinstance(y, np.ndarray):
        if y.ndim != 1:
            raise ValueError(f"the targets have the shape {y.shape}: pass shape (n,), one target per row")
        # Dates would become whole numbers of nanoseconds, which are targets.
        return y.tolist() if y.dtype.kind in "biufUO" else list(y)
    if isinstance(y, list | tuple):
        return list(y)
    package = type(y).__module__.partition(".")[0]
    if package == "pyarrow" and hasattr(y, "to_pylist"):
        return list(y.to_pylist())
    if package == "pandas" and getattr(y, "ndim", 0) == 1 and not hasattr(y, "iloc"):  # an array or an index
        return [None if missing else value for value, missing in zip(y.tolist(), y.isna().tolist(), strict=True)]
    try:
        series = into_series(y)
    except TypeError:
        raise TypeError(
            f"the targets are a {type(y).__name__}: pass a list, a one-dimensional array or a series"
        ) from None
    values = list(series.to_list())
    if series.implementation.is_pandas_like():  # which has NaN where others have null
        for row in np.flatnonzero(series.is_null().to_numpy()).tolist():
            values[row] = None
    return values
