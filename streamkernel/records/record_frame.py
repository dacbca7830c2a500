"""Records as dicts, read column by column as a data frame is."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from streamkernel.records.frames import Frame, FrameParts


class RecordFrame(Frame):
    """Records whose names are columns; what a record does not have is not observed.

    Parameters
    ----------
    xs
        n records: their names are strings, their values numbers, booleans, strings or None.

    """

    def __init__(self, xs: Sequence[Mapping[str, Any]]) -> None:
        self._records = xs

    def __len__(self) -> int:
        return len(self._records)

    def _parts(self) -> FrameParts:
        names = list(dict.fromkeys(name for x in self._records for name in x))
        listed = {name: [x.get(name) for x in self._records] for name in names}
        return names, [], np.zeros((len(self._records), 0)), listed
