"""Warnings about texts that should be numbers, dates or nothing, with what to do in Python or in a configuration."""

import json
import re
from collections.abc import Collection, Hashable

__all__ = ["many_values", "turned_to_text"]

_SAMPLE = 64
# A key that YAML reads as this text, without quotes.
_PLAIN_KEY = re.compile(r"(?!(?:y|n|yes|no|on|off|true|false|null)\Z)[a-z_]\w*", re.ASCII | re.IGNORECASE)


def many_values(name: Hashable, values: Collection[str], types_key: str = "") -> str:
    """Return what to do about a string input whose values rarely repeat.

    Parameters
    ----------
    name
        The input.
    values
        Its first values, each an indicator.
    types_key
        The key of a configuration that says how inputs are read; empty: there is none.

    Examples
    --------
    >>> print(many_values("a", ["1.5", "2.5"]).replace(": ", ":\\n  ", 1))
    input 'a' comes as text and all its values are numbers, each of which counts as a category:
      convert it to float, such as with converters={'a': float} of River's iter_csv
    >>> many_values("a", ["1,5", "2,5"], "source.inputs.types").partition(": ")[2]
    'set source.inputs.types: {a: {type: number, decimal: ","}}'

    """
    sample = list(values)[:_SAMPLE]
    decimal = next((mark for mark in ".," if sample and all(_is_number(text, mark) for text in sample)), "")
    if decimal:
        how = f"convert it to float, such as with converters={{{name!r:.80}: float}} of River's iter_csv"
        if decimal == ",":
            how = "convert it to float, with a decimal point"
        return (
            f"input {name!r:.80} comes as text and all its values are numbers, each of which counts as a category: "
            f"{_typed(name, decimal, types_key) or how}"
        )
    how = "leave it out of x; if it is a date, pass its calendar parts as numbers, such as month and weekday"
    if types_key:
        how = "exclude it; if it is a date, read it as a date"
    return (
        f"input {name!r:.80} rarely has the same value twice: new values after the first {len(values)} are ignored "
        f"until known ones repeat more often. If it is an id, {how}"
    )


def turned_to_text(name: Hashable, text: str, types_key: str = "") -> str:
    """Return what becomes of a text of an input that was a number, and what to do.

    Examples
    --------
    >>> print(turned_to_text("a", "17,50").replace(": ", ":\\n  ", 1))
    input 'a' was a number and is now the text '17,50', which counts as a category:
      use numbers, and leave missing values out
    >>> turned_to_text("a", "17,50", "source.inputs.types").partition(": ")[2]
    'use numbers, or set source.inputs.types: {a: {type: number, decimal: ","}}'

    """
    typed = _typed(name, "," if _is_number(text, ",") else ".", types_key)
    return (
        f"input {name!r:.80} was a number and is now the text {text!r:.80}, which counts as a category: use numbers, "
        + (f"or {typed}" if typed else "and leave missing values out")
    )


def _typed(name: Hashable, decimal: str, types_key: str) -> str:
    how = '{type: number, decimal: ","}' if decimal == "," else "number"
    key = f"{name!s:.80}"
    if not _PLAIN_KEY.fullmatch(key):  # YAML would read something else
        key = json.dumps(key, ensure_ascii=False)
    return f"set {types_key}: {{{key}: {how}}}" if types_key else ""


def _is_number(text: str, decimal: str) -> bool:
    try:
        float(text if decimal == "." else text.replace(".", "?").replace(decimal, "."))
    except ValueError:
        return False
    return True
