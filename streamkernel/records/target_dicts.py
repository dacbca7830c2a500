"""The targets of the rows of a frame, several for each, as dicts."""

from typing import Any

import numpy as np

from streamkernel.records.eager_frame import eager_frame
from streamkernel.records.target_list import target_list


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
