"""Decoding of inputs and targets, by the same rules for every source.

A missing input (None, NaN, an empty text) is left out. An unusable value (an infinite number, a nested value, a text
beyond the limit) makes the whole record a fault, with the reason.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from types import NoneType
from typing import Any, Literal, cast, get_args

from streamkernel.connectors.ports import CausedFault, Fault, Label

TargetType = Literal["str", "int", "bool", "float"]

TRUE_WORDS = frozenset({"true", "t", "yes", "y", "1"})
FALSE_WORDS = frozenset({"false", "f", "no", "n", "0"})
_EXACT_BELOW = 2.0**53


class UndecodableError(ValueError):
    """A record is unusable; the attribute `fault` has the reason and the detail."""

    def __init__(self, reason: str, detail: str, cause: str = "") -> None:
        super().__init__(detail)
        self.fault = CausedFault(reason, detail, cause) if cause else Fault(reason, detail)


def shown(value: object) -> str:
    """Return a value for the detail of a fault, in at most 60 characters."""
    if isinstance(value, int) and value.bit_length() > 200:
        return f"an integer of {value.bit_length()} bits"
    if isinstance(value, dict | list):
        return f"a {type(value).__name__}"
    text = repr(value[:80] if isinstance(value, str | bytes) else value)
    return text if len(text) <= 60 else text[:57] + "..."


def listed(names: Sequence[Any], phrase: Callable[[Any], str] = shown) -> str:
    """Return the first 20 names for a message, each as `phrase` writes it, and how many more there are."""
    phrases = ", ".join(map(phrase, names[:20]))
    return phrases + (f" and {len(names) - 20} more" if len(names) > 20 else "")


def decode_inputs(values: Iterable[tuple[str, Any]], max_string: int) -> dict[str, Any]:
    """Return the inputs of pairs of a name and a value, without missing ones, in the given order.

    Raises UndecodableError for an infinite number, a name or a text of more than `max_string` characters, and a value
    that is not None, a bool, an int, a float or a str.

    Examples
    --------
    >>> decode_inputs([("a", 1), ("b", None), ("c", float("nan")), ("d", "red"), ("e", ""), ("f", True)], 256)
    {'a': 1, 'd': 'red', 'f': True}

    """
    inputs: dict[str, Any] = {}
    for name, value in values:
        if len(name) > max_string:
            raise UndecodableError("string_too_long", f"the name of an input is {len(name)} characters long")
        if value is None:
            continue
        kind = type(value)
        if kind is float:
            if not math.isfinite(value):
                if math.isnan(value):
                    continue
                raise UndecodableError("infinite", f"input {shown(name)} is infinite")
        elif kind is str:
            if not value or value.isspace():
                continue
            if len(value) > max_string:
                raise too_long(f"input {shown(name)}", value, max_string)
        elif kind is int:
            try:
                float(value)
            except OverflowError:
                raise UndecodableError("infinite", f"input {shown(name)} is beyond the largest number") from None
        elif kind is not bool:
            raise UndecodableError("nested", f"input {shown(name)} is a {kind.__name__}, not a number or a string")
        inputs[name] = value
    return inputs


def finite_floats(texts: Sequence[str]) -> list[float] | None:
    """Return texts without underscores as finite numbers; None if one of them is something else, or may be."""
    try:
        numbers = list(map(float, texts))
    except ValueError:
        return None
    return numbers if math.isfinite(sum(numbers)) else None


def present(inputs: dict[str, Any]) -> dict[str, Any]:
    """Return the inputs that are not None."""
    if None in inputs.values():
        return {name: value for name, value in inputs.items() if value is not None}
    return inputs


def text_of_float(value: float) -> str:
    """Return a finite number as text, a whole one without a point, so that 1 and 1.0 are the same text.

    Examples
    --------
    >>> text_of_float(1.0), text_of_float(0.5), text_of_float(1e300)
    ('1', '0.5', '1e+300')

    """
    return str(int(value)) if value.is_integer() and abs(value) < _EXACT_BELOW else repr(value)


class TargetDecoder:
    """A decoder of targets to labels.

    Parameters
    ----------
    target_type
        ``"str"`` (the exact text; ``"1"`` for the number 1.0, ``"true"`` for true), ``"int"``, ``"bool"`` (true, t,
        yes, y, 1 and false, f, no, n, 0, in any case, 1.0 and 0.0) or ``"float"``.
    max_string
        The maximum length of a text label.
    plain
        Returns a number's text in Python's notation, or raises ValueError; None: it has that notation.

    Raises
    ------
    ValueError
        For an unknown `target_type`.

    Examples
    --------
    >>> TargetDecoder("bool", 256).decode("Yes"), TargetDecoder("float", 256).decode("")
    (True, None)
    >>> [TargetDecoder("int", 256).decode(value) for value in ("7", "8.0", 7, "nan")]
    [7, 8, 7, None]

    """

    def __init__(self, target_type: str, max_string: int, plain: Callable[[str], str] | None = None) -> None:
        if target_type not in get_args(TargetType):
            raise ValueError(f"target_type must be one of str, int, bool, float, got {target_type!r}")
        self._type = target_type
        self._max_string = max_string
        self._plain = plain if target_type in ("int", "float") else None
        self._convert, self._meaning, self._labels = _CONVERTERS[target_type]

    def decode(self, value: Any) -> Label | None:
        """Return the label of a text, a number or a bool; None for a missing, empty or NaN target.

        Raises UndecodableError for anything else, with the reason ``"target"`` or ``"string_too_long"``.
        """
        kind = type(value)
        if kind in self._labels:
            return cast("Label | None", value)
        if kind is str:
            word = value.strip()
            if not word or (self._type != "str" and word.lower().lstrip("+-") == "nan"):
                return None
            if self._type == "str":
                if len(value) > self._max_string:
                    raise too_long("the target", value, self._max_string)
                return cast("str", value)
        elif value is None or (kind is float and math.isnan(value)):
            return None
        elif kind is int and self._type == "str" and value.bit_length() > 2 * self._max_string:
            raise self._unfit(value)
        try:
            return self._convert(self._plain(value) if kind is str and self._plain is not None else value)
        except (ValueError, OverflowError, TypeError):
            raise self._unfit(value) from None

    def _unfit(self, value: Any) -> UndecodableError:
        return UndecodableError("target", f"the target {shown(value)} is not {self._meaning}")


def too_long(what: str, value: str, max_string: int) -> UndecodableError:
    """Return the error of a text beyond the limit."""
    return UndecodableError(
        "string_too_long", f"{what} is {len(value)} characters long, more than max_string ({max_string})"
    )


def _string(value: Label) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str | int):
        return str(value)
    if math.isfinite(value):
        return text_of_float(value)
    raise ValueError(value)


def _integer(value: Label) -> int:
    if isinstance(value, str):
        if "_" in value:
            raise ValueError(value)
        try:
            return int(value)
        except ValueError:
            value = float(value)
    if isinstance(value, bool) or value != int(value):
        raise ValueError(value)
    return int(value)


def _float(value: Label) -> float:
    if isinstance(value, bool) or (isinstance(value, str) and "_" in value):
        raise ValueError(value)
    number = float(value)
    if not math.isfinite(number):
        raise ValueError(value)
    return number


def _boolean(value: Label) -> bool:
    if isinstance(value, str):
        word = value.strip().lower()
        if word in TRUE_WORDS:
            return True
        if word in FALSE_WORDS:
            return False
        value = math.nan if "_" in word else float(word)
    if value in (0, 1):
        return bool(value)
    raise ValueError(value)


# The conversion of a target, the name of the label's type, and the types of values that are labels already.
_CONVERTERS: dict[str, tuple[Callable[[Any], Label], str, frozenset[type]]] = {
    "str": (_string, "a label", frozenset()),
    "int": (_integer, "an int", frozenset({int, NoneType})),
    "bool": (_boolean, "true or false", frozenset({bool, NoneType})),
    "float": (_float, "a finite float", frozenset()),
}
