"""What the window solvers are given as rows: columns found by their names, and matrices of other kinds refused."""

from collections.abc import Hashable, Sequence
from typing import Any

from scipy import sparse

from streamkernel.state import excerpt

__all__ = ["by_name", "column_names", "require_dense"]


def column_names(X: Any) -> tuple[Hashable, ...] | None:
    """The names of a data frame's columns (pandas, polars, pyarrow); None of anything else.

    Examples
    --------
    >>> import pandas as pd
    >>> column_names(pd.DataFrame({"a": [1.0], "b": [2.0]})), column_names([[1.0, 2.0]])
    (('a', 'b'), None)

    """
    # Attributes of the type: those of an instance of pandas may be columns. The `columns` of pyarrow are not the names.
    for attribute in ("column_names", "columns"):
        if hasattr(type(X), attribute):
            return tuple(getattr(X, attribute))
    return None


def by_name(X: Any, names: Sequence[Hashable] | None) -> Any:
    """A data frame with the columns of these names, in their order; anything else, and without names, as it is.

    ValueError: A data frame lacks one of them.
    """
    given = column_names(X)
    if names is None or given is None or given == tuple(names):
        return X
    lacking = next((name for name in names if name not in given), None)
    if lacking is not None:
        raise ValueError(f"X lacks the column {excerpt(lacking)}, which the fitted data had")
    return X.select(list(names)) if hasattr(type(X), "select") else X[list(names)]


def require_dense(name: str, values: Any) -> None:
    """Refuse sparse matrices, and products of two factors, where rows of numbers are wanted, by a ValueError."""
    if sparse.issparse(values):
        raise ValueError(f"{name} is sparse, which only DSPDC accepts: pass {name}.toarray()")
    if getattr(type(values), "is_product", False):
        raise ValueError(f"{name} is a product of two factors, which only DSPDC accepts: pass U @ V")
