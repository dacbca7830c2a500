"""What is given as X as an eager data frame; anything else is refused by a sentence that says what to give."""

from typing import Any

import narwhals.stable.v2 as nw
from narwhals.exceptions import DuplicateError
from river.utils.dataframe import into_frame

_GIVE = "pass an eager data frame (pandas, polars, pyarrow) or an array of shape (n, d), one row per record"


def eager_frame(X: Any, name: str = "X") -> nw.DataFrame[Any]:
    """The data frame X as narwhals has it.

    Parameters
    ----------
    X
        The data frame.
    name
        What the caller names it, for the sentence that refuses it.

    Raises
    ------
    ValueError
        Two columns have the same name.
    TypeError
        X is no eager data frame.

    """
    try:
        frame = into_frame(X)
    except DuplicateError as error:
        names = ", ".join(map(repr, _repeated(X)))
        raise ValueError(f"{name} has several columns of the same name, {names}: rename them") from error
    except TypeError:
        raise TypeError(_refusal(X, name)) from None
    if isinstance(frame, nw.LazyFrame):  # one that narwhals wraps already
        raise TypeError(_refusal(X, name))
    return frame


def _repeated(X: Any) -> list[Any]:
    names = list(X.column_names if hasattr(type(X), "column_names") else X.columns)
    return [name for name in dict.fromkeys(names) if names.count(name) > 1][:3]


def _refusal(X: Any, called: str) -> str:
    name = type(X).__name__
    if X is None:
        return f"{called} is None: {_GIVE}"
    if hasattr(type(X), "toarray"):
        return f"{called} is sparse, a {name}: pass {called}.toarray()"
    try:
        wrapped = nw.from_native(X, allow_series=True, pass_through=True)
    except Exception:
        wrapped = X
    if isinstance(wrapped, nw.LazyFrame):
        return f"{called} is lazy, a {name}: collect it first, and {_GIVE}"
    if isinstance(wrapped, nw.Series):
        return f"{called} is a series, a {name}: {_GIVE}"
    return f"{called} is a {name}: {_GIVE}"
