"""What a loss gives, as an array of the shape that was asked for: numpy would broadcast any other without a word."""

from typing import Any

import numpy as np

from streamkernel.state import Array, excerpt

_FLOAT = np.dtype(np.float64)
_NUMBERS = "biuf"


def loss_answer(loss: Any, method: str, answer: Any, shape: tuple[int, ...]) -> Array:
    """The answer of a loss's method as float64 of a shape.

    Parameters
    ----------
    loss
        What gave it.
    method
        The name of the method.
    answer
        What it gave.
    shape
        The shape that it must have.

    Raises
    ------
    TypeError
        It is no array of numbers, or of another shape. The daemon takes a ValueError for that of a record.

    """
    if type(answer) is np.ndarray and answer.dtype == _FLOAT and answer.shape == shape:
        return answer
    what = f"the loss {type(loss).__name__} gave"
    where = f"in its method `{method}`"
    wanted = f"it must give an array of numbers of shape {shape}"
    try:
        given = np.asarray(answer)
        numbers = np.asarray(given, np.float64) if given.dtype.kind in _NUMBERS + "O" else None
    except (TypeError, ValueError):
        numbers = None
    if numbers is None or answer is None:
        raise TypeError(f"{what} {excerpt(answer)} {where}: {wanted}")
    if numbers.shape != shape:
        raise TypeError(f"{what} an array of shape {numbers.shape} {where}: {wanted}")
    return numbers
