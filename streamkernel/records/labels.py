"""Class labels as plain Python values, which the encoders of labels share."""

import math
from typing import Any

import numpy as np

from streamkernel.dates import instead_of_label
from streamkernel.state import excerpt, tag, untag

#: Types of labels that are plain values as they come.
PLAIN_LABELS = {str, bool, int}


def plain_label(y: Any) -> Any:
    """Return a label as a plain Python value; None stays None.

    Raises
    ------
    ValueError
        It is NaN, or of a type that is no label.

    """
    if y is None or type(y) in PLAIN_LABELS:
        return y
    if instead := instead_of_label(y):  # before numpy makes a number of it
        kind = type(y).__name__
        raise ValueError(
            f"{excerpt(y)} is of type {kind}: names and labels are strings, booleans or numbers; use {instead}"
        )
    if isinstance(y, np.generic):
        y = y.item()
    if isinstance(y, float) and math.isnan(y):
        raise ValueError("the label is NaN: use a string, a boolean or a number, or None if it is not known")
    return untag(tag(y))
