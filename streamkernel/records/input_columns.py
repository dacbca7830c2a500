"""The columns of named inputs: each a number, or the indicator of one value of a string input.

Columns are found by name, so neither the order of a record's keys nor the moment an input first appears matters to the
features: those are drawn by the key of the name.

Each number is centered and scaled by the running moments of its column.
"""

from collections import Counter
from collections.abc import Hashable, Iterable, Iterator
from typing import Any, ClassVar

import numpy as np

from streamkernel.compute.features import Scaling
from streamkernel.compute.moments import COUNT, LARGEST, M2, MEAN, are_moments, scale
from streamkernel.compute.moments import SIZE as MOMENTS
from streamkernel.fields import Rules, array, checked, state_mismatch
from streamkernel.records.rows import Rows
from streamkernel.state import Array, State, key_of, untag

_NO_KEYS = np.zeros(0, np.uint64)


class InputColumns:
    """The columns in the order of arrival, found by name, as scikit-learn's `DictVectorizer` finds them.

    Iterating yields each as ["number", name] or ["indicator", name, value]; names as `tag` has them.

    - numbers: The index of the column of each number, by name.
    - indicators: The indexes of the indicators of each string input, by name and value.
    """

    def __init__(self) -> None:
        self.clear()

    def clear(self) -> None:
        """Remove all columns."""
        self.numbers: dict[Hashable, int] = {}
        self.indicators: dict[Hashable, dict[str, int]] = {}
        self._tagged: list[list[Any]] = []
        self._keys: list[int] = []
        self._taken: set[int] = set()
        self._key_array = _NO_KEYS

    def __len__(self) -> int:
        return len(self._tagged)

    def __iter__(self) -> Iterator[list[Any]]:
        return iter(self._tagged)

    @property
    def keys(self) -> Array:
        """The columns' keys, uint64 of shape (d,)."""
        if len(self._key_array) != len(self._keys):
            self._key_array = np.array(self._keys, np.uint64)
        return self._key_array

    @property
    def names(self) -> list[str]:
        """The names of the columns as text, `name` or, of an indicator, `name=value`."""
        return [str(untag(name[1])) + (f"={name[2]}" if name[0] == "indicator" else "") for name in self]

    @property
    def plain_names(self) -> tuple[Any, ...] | None:
        """The names of all columns in their order if all are numbers; else None."""
        return tuple(self.numbers) if len(self.numbers) == len(self) else None

    def arrivals(self, unknown: Iterable[tuple[list[Any], float]]) -> list[tuple[int, list[Any], float]]:
        """The columns, with a value each, that may be added: with their keys, in the order of these.

        An input is ignored where a column has its key. Of two of one key the first by name is taken.
        """
        found: dict[int, tuple[list[Any], float]] = {}
        for tagged, value in unknown:
            key = key_of(tagged)
            if key not in self._taken and (key not in found or repr(tagged) < repr(found[key][0])):
                found[key] = tagged, value
        return [(key, *found[key]) for key in sorted(found)]

    def n_values(self) -> dict[Hashable, int]:
        """The number of indicators of each string input, in the order of arrival."""
        names = (untag(tagged[1]) for tagged in self if tagged[0] == "indicator")
        return dict(Counter(names))

    def append(self, tagged: list[Any]) -> None:
        """Add a column, given as iterating yields it."""
        column = len(self)
        name = untag(tagged[1])
        if tagged[0] == "indicator":
            self.indicators.setdefault(name, {})[tagged[2]] = column
        else:
            self.numbers[name] = column
        self._tagged.append(tagged)
        self._keys.append(key_of(tagged))
        self._taken.add(self._keys[-1])

    def load_state(self, state: State) -> None:
        """Take the columns that the state of `Inputs` lists; ValueError where they do not fit."""
        self.clear()
        columns = state.get("columns")
        for name in columns if isinstance(columns, list) else [columns]:
            match name:
                case ["number", tagged] | ["indicator", tagged, str()] if _is_tag(tagged):
                    self.append(list(name))
                case _:
                    raise state_mismatch("columns")
        if len(set(self._keys)) != len(self):
            raise state_mismatch("columns")


def _is_tag(tagged: Any) -> bool:
    try:
        untag(tagged)
    except ValueError:
        return False
    return True


#: Scaled inputs are clipped to this many deviations.
SCALED_LIMIT = 4.0
#: Inputs that are not scaled are clipped here, where float32 projections stay finite.
RAW_LIMIT = 1e15


class InputScaler:
    """The running moments of the columns, and rows standardized by them, as River's `StandardScaler` does it.

    Scaled values are cut at `SCALED_LIMIT` deviations, and outliers count in the moments as less than they are
    (`compute.moments`).

    - columns: The columns, as `InputColumns` yields them; after some were added, `fit` gives them moments.
    - standardize: Whether numbers are centered and scaled by their running mean and deviation.
    - moments: The running moments of each column, float64 of shape (d, `compute.moments.SIZE`).
    """

    rules: ClassVar[Rules] = {"input_moments": are_moments}

    def __init__(self, columns: Any, standardize: bool) -> None:
        self.standardize = standardize
        self._limit = SCALED_LIMIT if standardize else RAW_LIMIT
        self._columns = columns
        self.forget()

    def forget(self) -> None:
        """Reset the moments."""
        self.moments = np.zeros((0, MOMENTS))
        self._is_number = np.zeros(0, np.bool_)
        self.fit()

    def fit(self) -> None:
        """Add rows of moments for columns that have none yet."""
        n_columns = len(self._columns)
        missing = n_columns - len(self.moments)
        if missing > 0:
            self.moments = np.concatenate([self.moments, np.zeros((missing, MOMENTS))])
        if len(self._is_number) != n_columns:
            self._is_number = np.array([name[0] == "number" for name in self._columns], np.bool_)

    def scale(self, rows: Rows, learn: Array, dtype: np.dtype[Any]) -> Array:
        """Scale encoded rows one after the other, each by the moments that include it.

        - rows: n encoded rows.
        - learn: The rows that update the moments, bool of shape (n,); others are scaled as if they did, and then
          forgotten.
        - dtype: float32 or float64.

        Returns array of shape (n, d + e); absent values are 0, the mean.
        """
        n, d = rows.values.shape
        out = np.empty((n, d + rows.extras.shape[1]), dtype)
        scale(rows.values, learn, *self.scaling(d), 0, out)
        out[:, d:] = rows.extras
        return out

    def take(self, values: Array, columns: slice) -> None:
        """Take encoded rows, (n, d), into the moments of some columns, row by row."""
        own = np.ascontiguousarray(values[:, columns])
        if own.size:
            scale(own, np.ones(len(own), np.bool_), *self._scaling(columns), 0, np.empty(own.shape))

    def scaling(self, n_columns: int) -> Scaling:
        """The scaling parameters and moments of the first columns, for compiled code to read and update."""
        if n_columns == len(self.moments):
            return Scaling(self.standardize, self._limit, self._is_number, self.moments)
        return self._scaling(slice(n_columns))

    def _scaling(self, columns: slice) -> Scaling:
        return Scaling(self.standardize, self._limit, self._is_number[columns], self.moments[columns])

    def _deviations(self, moments: Array) -> Array:
        return np.asarray(np.sqrt(moments[:, M2] / np.maximum(moments[:, COUNT], 1)))

    def as_of_now(self, values: Array) -> Array:
        """Encoded values of shape (n, d), scaled by the current moments, which are not updated."""
        if self.standardize:
            deviation = self._deviations(self.moments)
            centered = np.clip(values, -LARGEST, LARGEST) - self.moments[:, MEAN]
            scaled = np.divide(centered, deviation, out=np.zeros_like(values), where=deviation > 0)
            values = np.where(self._is_number, np.clip(scaled, -SCALED_LIMIT, SCALED_LIMIT), values)
        return np.asarray(np.nan_to_num(np.clip(values, -RAW_LIMIT, RAW_LIMIT), nan=0.0))

    def as_they_came(self, X: Array) -> Array:
        """Return the encoded values of scaled rows (n, d), by the current moments; 0 is the mean, and not observed."""
        values = X.astype(np.float64)
        if self.standardize:
            _, _, is_number, moments = self.scaling(X.shape[1])
            values = np.where(is_number, moments[:, MEAN] + values * self._deviations(moments), values)
        return np.where(X == 0, np.nan, values)

    def state(self) -> State:
        """The fields of the state."""
        return checked({"input_moments": self.moments.copy()}, self.rules)

    def load_state(self, state: State) -> None:
        """Take the moments of all columns, which `state` gave; ValueError where they do not fit."""
        checked(state, self.rules)
        self.forget()
        self.moments = array(state, "input_moments", np.float64, len(self._columns), MOMENTS)
