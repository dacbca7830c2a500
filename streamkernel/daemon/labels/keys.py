"""The key that joins a record and its label: the value of their key field, as text."""

from __future__ import annotations

from typing import Any

__all__ = ["key_of"]

# From here on not every whole number is a float, so that two keys of a CSV file would read as one.
_EXACT_BELOW = 2.0**53


def key_of(value: Any) -> str | None:
    """Return a key as text, the same for a number however its file wrote it.

    Parameters
    ----------
    value
        A decoded input: a string, a number or a boolean; None where there is none.

    Returns
    -------
    key
        None where there is no key, or a number with too many digits to be one key.

    Examples
    --------
    >>> [key_of(value) for value in (17, 17.0, "17", 0.5, True, "order 7")]
    ['17', '17', '17', '0.5', 'true', 'order 7']
    >>> key_of(12345678901234567890.0), key_of(12345678901234567890), key_of(None)
    (None, '12345678901234567890', None)

    """
    kind = type(value)
    if kind is str or kind is int:
        return str(value)
    if kind is float:
        if not -_EXACT_BELOW < value < _EXACT_BELOW:
            return None
        return str(int(value)) if value.is_integer() else repr(value)
    return None if value is None else str(value).lower()
