"""Records in the columns of a data frame or array, read column by column instead of row by row.

Numbers are read as one matrix, strings as codes of their distinct values; only columns of mixed or unusual values are
looked at value by value.

The targets of a call become Python values, one for each row, or a dict.
"""

import math
from collections.abc import Collection, Hashable, Mapping, Sequence
from typing import Any, NamedTuple

import narwhals.stable.v2 as nw
import numpy as np
from narwhals.exceptions import DuplicateError
from river.utils.dataframe import into_frame, into_series, to_native_frame, to_native_series, to_numpy

from streamkernel.state import Array, real, tag, untag

#: FrameColumns that numpy takes as a whole; any other is looked through as Python values.
_MATRIX = {nw.Boolean, nw.Float32, nw.Float64}
_MATRIX |= {nw.Int8, nw.Int16, nw.Int32, nw.Int64, nw.UInt8, nw.UInt16, nw.UInt32, nw.UInt64}
#: Arrays of these kinds give plain Python values; dates would give whole numbers of nanoseconds.
_PLAIN_ARRAY = "OUT"
_NUMBERS = {float, int, bool, type(None)}
_LABELS = {str, bool, int, float}
_GIVE = "pass an eager data frame (pandas, polars, pyarrow) or an array of shape (n, d), one row per record"


class Texts(NamedTuple):
    """The strings of one column as codes.

    - name: The column's name.
    - codes: The index in `values` of each row's string, int64 of shape (n,); -1 where it holds none.
    - values: The distinct strings.
    """

    name: Hashable
    codes: Array
    values: Sequence[str]


class FrameColumns(NamedTuple):
    """The contents of a frame as arrays.

    - names: The names of the p columns with numbers.
    - numbers: float64 of shape (n, p + 1); NaN where not observed, as all of the last column is.
    - texts: The columns with strings. A column may have both numbers and strings.
    - refused: The first value that cannot be an input, under its column's name; empty if there is none.
    """

    names: list[Any]
    numbers: Array
    texts: list[Texts]
    refused: dict[Any, Any]


#: All names, those of the columns that are numbers throughout with their values, and the others as Python values.
FrameParts = tuple[list[Any], list[Any], Array, dict[Any, list[Any]]]


class Frame:
    """A data frame or array whose rows are records.

    - X: Any eager data frame that narwhals knows (pandas, polars, pyarrow), or an array, of shape (n, d), whose columns
      are named by the whole numbers from 0 up.

    ValueError: An array does not have two dimensions, or two columns of a frame have the same name.
    TypeError: X is neither an eager data frame nor an array.
    """

    def __init__(self, X: Any) -> None:
        self._array: Array | None = None
        if isinstance(X, np.ndarray):
            if X.ndim != 2:
                raise ValueError(f"X is an array of shape {X.shape}: pass shape (n, d), one row per record")
            self._array = _unmasked(X)
        else:
            self._frame: nw.DataFrame[Any] = eager_frame(X)

    def __len__(self) -> int:
        return len(self._frame if self._array is None else self._array)

    def read(self) -> FrameColumns:
        """Read the columns into arrays of their own.

        ValueError: A column's name is of a type that no input's name may have.
        """
        order, names, matrix, listed = self._parts()
        mixed = {name: _look_through(values) for name, values in listed.items()}
        held = [name for name, column in mixed.items() if column.numbers is not None]
        numbers = np.full((len(self), len(names) + len(held) + 1), np.nan)
        numbers[:, : len(names)] = matrix
        for j, name in enumerate(held, len(names)):
            numbers[:, j] = mixed[name].numbers
        names += held
        texts = [Texts(name, c.codes, c.texts) for name, c in mixed.items() if c.codes is not None]

        refused = [(c.refused, name, listed[name][c.refused]) for name, c in mixed.items() if c.refused is not None]
        rows, infinite = np.nonzero(np.isinf(numbers))
        refused += [(rows[0], names[j], math.inf) for j in infinite[rows == rows[:1]]]
        if not refused:
            return FrameColumns(names, numbers, texts, {})
        _, name, value = min(refused, key=lambda one: (one[0], order.index(one[1])))
        return FrameColumns(names, numbers, texts, {name: value})

    def parted(self, names: Collection[str]) -> tuple["Frame", dict[str, list[Any]]]:
        """Part the frame from some columns; those it has, as Python values by name."""
        own = [] if self._array is not None else [name for name in self._frame.columns if name in names]
        if not own:
            return self, {}
        rest = Frame(self._frame.drop(own).to_native())
        return rest, {name: self._frame[name].to_list() for name in own}

    def series(self, values: Array | list[Any]) -> Any:
        """One value for each row as a series of the frame's library with its index; for an array, one of shape (n,)."""
        if self._array is None:
            return to_native_series(values, name=None, like=self._frame)
        if isinstance(values, np.ndarray):
            return values
        kinds = set(map(type, values))
        alike = len(kinds) == 1 and kinds <= _LABELS
        return np.array(values) if alike else np.fromiter(values, np.dtype(object), len(values))

    def table(self, labels: Sequence[Any], values: Array) -> Any:
        """Values of shape (n, K) by label as a frame of the same library and index; for an array, as they are."""
        if self._array is not None:
            return values
        columns = dict(zip(labels, np.array(values.T, order="C"), strict=True))
        return to_native_frame(columns, like=self._frame)

    def _parts(self) -> FrameParts:
        array = self._array
        if array is not None:
            order = list(range(array.shape[1]))
            if array.dtype.kind in "biuf":
                return order, [*order], array, {}
            plain = array.dtype.kind in _PLAIN_ARRAY
            listed = {j: column.tolist() if plain else list(column) for j, column in enumerate(array.T)}
            return order, [], np.zeros((len(array), 0)), listed
        numeric = {_plain(name): type(dtype) in _MATRIX for name, dtype in self._frame.schema.items()}
        names = [name for name, plain in numeric.items() if plain]
        # By position: narwhals takes a name that is a number for one.
        positions = [j for j, plain in enumerate(numeric.values()) if plain]
        chosen = self._frame if len(names) == len(numeric) else self._frame[:, positions]
        matrix = to_numpy(chosen) if names else np.zeros((len(self), 0))
        listed = {name: self._frame[:, j].to_list() for j, name in enumerate(numeric) if not numeric[name]}
        return list(numeric), names, matrix, listed


class RecordFrame(Frame):
    """Records whose names are columns; what a record does not have is not observed.

    - xs: n records: their names are strings, their values numbers, booleans, strings or None.
    """

    def __init__(self, xs: Sequence[Mapping[str, Any]]) -> None:
        self._records = xs

    def __len__(self) -> int:
        return len(self._records)

    def _parts(self) -> FrameParts:
        names = list(dict.fromkeys(name for x in self._records for name in x))
        listed = {name: [x.get(name) for x in self._records] for name in names}
        return names, [], np.zeros((len(self._records), 0)), listed


def _unmasked(X: Array) -> Array:
    """A plain array; what a masked one has masked is not observed."""
    if not isinstance(X, np.ma.MaskedArray):
        return np.asarray(X)
    masked: Any = X.astype(np.float64 if X.dtype.kind in "biuf" else object)
    return np.asarray(masked.filled(np.nan))


def _plain(name: Hashable) -> Any:
    return name if type(name) is str else untag(tag(name))


class _Mixed(NamedTuple):
    """A column of Python values: its numbers, codes of strings with these, and the first row that is no input."""

    numbers: Array | None = None
    codes: Array | None = None
    texts: Sequence[str] = ()
    refused: int | None = None


def _look_through(values: list[Any]) -> _Mixed:
    kinds = set(map(type, values))
    if kinds == {str}:
        texts = {text: code for code, text in enumerate(dict.fromkeys(values))}
        return _Mixed(None, np.fromiter(map(texts.__getitem__, values), np.int64, len(values)), list(texts))
    if kinds <= _NUMBERS:
        try:
            return _Mixed(np.array(values, np.float64))
        except OverflowError:  # an integer past the largest float
            pass
    return _look_at_each(values)


def _look_at_each(values: list[Any]) -> _Mixed:
    numbers, codes = np.full(len(values), np.nan), np.full(len(values), -1)
    texts: dict[str, int] = {}
    for row, value in enumerate(values):
        if isinstance(value, str):
            codes[row] = texts.setdefault(str.__str__(value), len(texts))  # a subclass may hash as something else
        elif value is not None:
            number = real(value)
            if number is None or math.isinf(number):
                return _Mixed(refused=row)
            numbers[row] = number
    return _Mixed(None if np.isnan(numbers).all() and texts else numbers, codes if texts else None, list(texts))


def eager_frame(X: Any, name: str = "X") -> nw.DataFrame[Any]:
    """The data frame X as narwhals has it.

    - X: The data frame.
    - name: What the caller names it, for the sentence that refuses it.

    ValueError: Two columns have the same name.
    TypeError: X is no eager data frame.
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


def target_list(y: Any) -> list[Any]:
    """The targets of the rows of a frame as Python values.

    - y: A list, tuple or array, a series that narwhals knows (pandas, polars, a chunked array of pyarrow), an array or
      index of pandas, or a `pyarrow.Array`.

    Returns n values; None where a list has None, a series a null, and one of pandas anything that it takes for missing
    (NaN, NA, NaT): such a row is not learned.
    ValueError: An array does not have one dimension.
    TypeError: y is none of these.

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

    - y: A data frame that narwhals knows (pandas, polars, pyarrow), with a column for each target; an array of shape
      (n, K), whose targets are named 0 to K - 1; or a list of dicts.

    Returns n dicts; None for what is missing in a frame: null or, in one of pandas, NaN, NA and NaT.
    ValueError: An array does not have two dimensions.
    TypeError: y is none of these.

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
