"""The targets of a call as Python values, from arrays, series, frames and lists: one for each row, or a dict."""

from typing import Any

import numpy as np
from river.utils.dataframe import into_series

from streamkernel.records.frames import eager_frame


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


def target_dicts(y: Any) -> list[Any]:
    """The targets of the rows of a frame by name.

    Parameters
    ----------
    y
        A data frame that narwhals knows (pandas, polars, pyarrow), with a column for each target; an array of shape (n,
        K), whose targets are named 0 to K - 1; or a list of dicts.

    Returns
    -------
    n dicts; None for what is missing in a frame: null or, in one of pandas, NaN, NA and NaT.

    Raises
    ------
    ValueError
        An array does not have two dimensions.
    TypeError
        y is none of these.

    Examples
    --------
    >>> import pandas as pd
    >>> target_dicts(pd.DataFrame({"a": [1.5, None], "b": [2.0, 3.0]}))
    [{'a': 1.5, 'b': 2.0}, {'a': None, 'b': 3.0}]

    """
    if isinstance(y, list | tuple):
        return list(y)
    if isinstance(y, np.ndarray):
        if y.ndim != 2:
            raise ValueError(f"the targets have the shape {y.shape}: pass shape (n, K), a column for each target")
        columns: dict[Any, list[Any]] = dict(enumerate(map(target_list, y.T)))
    else:
        frame = eager_frame(y, "y")
        # By position: narwhals takes a name that is a number for one.
        columns = {name: target_list(frame[:, place].to_native()) for place, name in enumerate(frame.columns)}
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
