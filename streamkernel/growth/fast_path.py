"""The fast path into a growing machine: one record of known numbers, read without a look at each value."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from streamkernel.records.inputs import Inputs
from streamkernel.records.plain import PlainRecords


class GrowingFastPath:
    """Reads records that hold all inputs, if all are numbers; it holds until the inputs are others.

    Parameters
    ----------
    inputs
        The machine's.

    Attributes
    ----------
    values
        The last record it took, float64 of shape (1, d).
    scaling
        The moments by which it is to be scaled.

    """

    def __init__(self, inputs: Inputs) -> None:
        names = inputs.columns.plain_names
        self._records = PlainRecords(names) if names else None
        self._is_outside = inputs.is_outside
        self.values = self._records.values if self._records else np.zeros((1, 0))
        self.scaling = inputs.scaler.scaling(len(inputs))

    def takes(self, x: Mapping[Any, Any]) -> bool:
        """Whether a record is one of known numbers; they are in `values` then."""
        return self._records is not None and self._records.read_one(x) and not self._is_outside(self.values)
