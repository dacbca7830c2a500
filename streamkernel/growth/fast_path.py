"""The fast path into a growing machine: one record of known numbers, read without a look at each value."""

from collections.abc import Callable

import numpy as np

from streamkernel.records.inputs import Inputs
from streamkernel.records.plain import PlainRecords


class GrowingFastPath:
    """Reads records that hold all inputs, if all are numbers; it holds until the inputs are others.

    - n: The records that there is room for. Defaults to 1.
    - values: The records that it took, float64 of shape (n, d).
    - scaling: The moments by which it is to be scaled.
    """

    def __init__(self, inputs: Inputs, n: int = 1) -> None:
        names = inputs.columns.plain_names
        records = PlainRecords(names, n) if names else None
        self.values = records.values if records else np.zeros((n, 0))
        self.scaling = inputs.scaler.scaling(len(inputs))
        #: Whether a record is one of known numbers; they are in a row of `values` then, the first or another.
        self.takes: Callable[..., bool] = records.read_one if records else lambda *_: False
        if inputs.domain is not None:
            read, values = self.takes, self.values
            self.takes = lambda x, place=0: read(x, place) and not inputs.is_outside(values[place])
