"""From the values of a record to its inputs and its target, by the same rules for every source.

An input that is None, NaN or an empty string is absent: its name is left out. What no model could use (an infinite
number, a nested value, a string beyond the limit) makes the whole record a fault, with the reason.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from types import NoneType
from typing import Any, Literal, get_args

from connectors.ports import Fault, Label

TargetType = Literal["str", "int", "bool", "float"]
TargetDecoder = Callable[[Any], Label | None]
TargetsDecoder = Callable[[Sequence[Any]], Sequence[Label | None]]

TRUE_WORDS = frozenset({"true", "t", "yes", "y", "1"})
FALSE_WORDS = frozenset({"false", "f", "no", "n", "0"})


class UndecodableError(ValueError):
    """A value makes its record unusable.

    Parameters
    ----------
    reason, detail
        The parts of the `Fault`, which is kept as the attribute `fault`.

    """

    def __init__(self, reason: str, detail: str) -> None:
        super().__init__(detail)
        self.fault = Fault(reason, detail)


def shown(value: object) -> str:
    """Return `value` as it may stand in a fault's detail: in at most 60 characters."""
    if isinstance(value, int) and value.bit_length() > 200:
        return f"an integer of {value.bit_length()} bits"
    if isinstance(value, dict | list):
        # Its repr may be a megabyte, or nested deeper than Python's stack.
        return f"a {type(value).__name__}"
    text = repr(value[:80] if isinstance(value, str | bytes) else value)
    return text if len(text) <= 60 else text[:57] + "..."


def decode_inputs(values: Iterable[tuple[str, Any]], max_string: int) -> dict[str, Any]:
    """Decode named values to inputs.

    Parameters
    ----------
    values
        Pairs of a name and a plain value: None, a bool, an int, a float or a str.
    max_string
        The most characters a name or a string value may have.

    Returns
    -------
    dict
        The inputs that are present, in the given order.

    Raises
    ------
    UndecodableError
        For an infinite number, a string that is too long, or a value of any other type.

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
                raise UndecodableError(
                    "string_too_long",
                    f"input {shown(name)} is {len(value)} characters long, more than max_string ({max_string})",
                )
        elif kind is int:
            if not _fits_float(value):
                raise UndecodableError("infinite", f"input {shown(name)} is beyond the largest number")
        elif kind is not bool:
            raise UndecodableError("nested", f"input {shown(name)} is a {kind.__name__}, not a number or a string")
        inputs[name] = value
    return inputs


def target_decoder(target_type: str, max_string: int) -> TargetDecoder:
    """Return the function that decodes a target.

    Parameters
    ----------
    target_type
        ``"str"``, ``"int"``, ``"bool"`` (true, t, yes, y, 1 and false, f, no, n, 0, in any case) or ``"float"``.
    max_string
        The most characters a string label may have.

    Returns
    -------
    callable
        From a text, a number, a bool or None to the label; None for a target that is missing, empty or NaN. It
        raises UndecodableError (reason ``"target"``, or ``"string_too_long"``) for anything else.

    Raises
    ------
    ValueError
        For an unknown `target_type`.

    Examples
    --------
    >>> target_decoder("bool", 256)("Yes"), target_decoder("int", 256)("7"), target_decoder("float", 256)("")
    (True, 7, None)

    """
    if target_type not in get_args(TargetType):
        raise ValueError(f"target_type must be one of str, int, bool, float, got {target_type!r}")
    if target_type == "str":
        return _string_decoder(max_string)
    converter, meaning = _CONVERTERS[target_type]

    def decode(value: Any) -> Label | None:
        if _missing(value):
            return None
        try:
            return converter(value)
        except (ValueError, OverflowError, TypeError):
            raise UndecodableError("target", f"the target {shown(value)} is not {meaning}") from None

    return decode


def targets_decoder(target_type: str, max_string: int) -> TargetsDecoder:
    """Return the function that decodes the targets of many records, to the same labels as `target_decoder` gives.

    Parameters
    ----------
    target_type, max_string
        As for `target_decoder`.

    Returns
    -------
    callable
        From the targets to the labels. It raises UndecodableError where one of them cannot be decoded.

    Raises
    ------
    ValueError
        For an unknown `target_type`.

    Examples
    --------
    >>> targets_decoder("bool", 256)(["yes", "no", "yes", ""])
    [True, False, True, None]

    """
    decode = target_decoder(target_type, max_string)
    themselves = _THEMSELVES.get(target_type, frozenset())

    def decode_all(values: Sequence[Any]) -> Sequence[Label | None]:
        kinds = set(map(type, values))
        if kinds <= themselves and (target_type != "float" or math.isfinite(sum(values))):
            return values
        if kinds == {str}:
            numbers = _floats(values) if target_type == "float" else None
            if numbers is not None:
                return numbers
            # Labels are few: what is the same text is the same label.
            labels = {text: decode(text) for text in set(values)}
            return [labels[text] for text in values]
        return [decode(value) for value in values]

    return decode_all


def _floats(texts: Sequence[str]) -> list[float] | None:
    """Return finite numbers; None where one of the texts is something else, or may be."""
    if "_" in "".join(texts):
        return None
    try:
        numbers = list(map(float, texts))
    except ValueError:
        return None
    return numbers if math.isfinite(sum(numbers)) else None


def _fits_float(value: int) -> bool:
    try:
        float(value)
    except OverflowError:
        return False
    return True


def _missing(value: Any) -> bool:
    """Tell whether a target is not there: None, NaN, or a text that is empty or says nan."""
    if value is None:
        return True
    if type(value) is str:
        text = value.strip()
        return not text or text.lower().lstrip("+-") == "nan"
    return type(value) is float and math.isnan(value)


def _string_decoder(max_string: int) -> TargetDecoder:
    def decode(value: Any) -> Label | None:
        if type(value) is str:
            if not value or value.isspace():
                return None
            if len(value) > max_string:
                raise UndecodableError(
                    "string_too_long",
                    f"the target is {len(value)} characters long, more than max_string ({max_string})",
                )
            return value
        if value is None or (type(value) is float and math.isnan(value)):
            return None
        if type(value) is bool:
            return "true" if value else "false"
        if (type(value) is int and value.bit_length() <= 2 * max_string) or (
            type(value) is float and math.isfinite(value)
        ):
            return str(value)
        raise UndecodableError("target", f"the target {shown(value)} is not a label")

    return decode


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
    elif value in (0, 1):
        return bool(value)
    raise ValueError(value)


_CONVERTERS: dict[str, tuple[Callable[[Any], Label], str]] = {
    "int": (_integer, "an int"),
    "bool": (_boolean, "true or false"),
    "float": (_float, "a finite float"),
}
# Values that are labels as they stand; of the floats, the finite ones.
_THEMSELVES: dict[str, frozenset[type]] = {
    "int": frozenset({int, NoneType}),
    "bool": frozenset({bool, NoneType}),
    "float": frozenset({float}),
}
