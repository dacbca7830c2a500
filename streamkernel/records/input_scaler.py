"""The running standardization of inputs: each number is centered and scaled by the moments of its column."""

from typing import Any, ClassVar

import numpy as np

from streamkernel.compute.arrival import Scaling
from streamkernel.compute.moments import COUNT, LARGEST, M2, MEAN, are_moments, scale
from streamkernel.compute.moments import SIZE as MOMENTS
from streamkernel.fields import Rules, array, checked
from streamkernel.records.rows import Rows
from streamkernel.state import Array, State

#: Scaled inputs are clipped to this many deviations.
SCALED_LIMIT = 4.0
#: Inputs that are not scaled are clipped here, where float32 projections stay finite.
RAW_LIMIT = 1e15


class InputScaler:
    """The running moments of the columns, and rows standardized by them, as River's `StandardScaler` does it.

    Scaled values are cut at `SCALED_LIMIT` deviations, and outliers count in the moments as less than they are
    (`compute.moments`).

    Parameters
    ----------
    columns
        The columns, as `InputColumns` yields them; after some were added, `fit` gives them moments.
    standardize
        Whether numbers are centered and scaled by their running mean and deviation.

    Attributes
    ----------
    moments
        The running moments of each column, float64 of shape (d, `compute.moments.SIZE`).

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

        Parameters
        ----------
        rows
            n encoded rows.
        learn
            The rows that update the moments, bool of shape (n,); others are scaled as if they did, and then forgotten.
        dtype
            float32 or float64.

        Returns
        -------
        Array of shape (n, d + e); absent values are 0, the mean.

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
