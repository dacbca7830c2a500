"""The cardinality limit of string inputs: how many indicators one may have, by how often its values come again.

A string input whose values hardly ever come again, such as an order number or a time stamp, identifies its record: an
indicator for each value would tell the model nothing, and slow it down with every record.
"""

import json
import logging
import re
from collections.abc import Collection, Hashable, Sequence
from typing import Any

from streamkernel.fields import state_mismatch
from streamkernel.state import State, tag

#: Values that every string input may have.
FREE = 64
#: Beyond `FREE`, this many times the root of its repetitions: 200 equally frequent values never wait, of 1,000 some 860
#: are known after 20,000 records; an order number with three lines to an order ends at 239, one of its own at 64.
PER_ROOT = 8
#: Values without an indicator after which the log names the input, so that it does not for a short delay.
LOGGED_AFTER = 64

_FIELD = "input_repeats"
_log = logging.getLogger(__name__)


class Repeats:
    """A counter of repetitions for each string input: learned records whose value had an indicator already.

    - types_key: The key of a configuration that says how inputs are read, for warnings; empty: there is none.
    """

    def __init__(self) -> None:
        self.types_key = ""
        self._counts: dict[Hashable, int] = {}
        # For the log alone, which names each input once.
        self._n_without: dict[Hashable, int] = {}

    def add(self, name: Hashable, n: int = 1) -> None:
        """Count repetitions of an input's values."""
        self._counts[name] = self._counts.get(name, 0) + n

    def has_room(self, name: Hashable, n_values: int) -> bool:
        """Whether an input with `n_values` indicators may have one more."""
        return n_values < FREE or (n_values - FREE) ** 2 < PER_ROOT * PER_ROOT * self._counts.get(name, 0)

    def note_without(self, name: Hashable, values: Collection[str], n: int = 1) -> None:
        """Count n learned values that got no indicator, unlike `values`; logs a warning once for each input."""
        before = self._n_without.get(name, 0)
        self._n_without[name] = before + n
        if before < LOGGED_AFTER <= before + n:
            _log.warning("%s", many_values(name, values, self.types_key))

    def state(self, names: Sequence[Hashable]) -> State:
        """The field of the state, for the string inputs of these names; none where there is no such input."""
        return {_FIELD: [[tag(name), self._counts.get(name, 0)] for name in names]} if names else {}

    def load_state(self, state: State, names: Sequence[Hashable]) -> None:
        """Take the field that `state` gave, for string inputs of these names."""
        self._n_without = {}
        self._counts = {}
        counts: Any = state.get(_FIELD, [])
        if not isinstance(counts, list) or len(counts) != len(names):
            raise state_mismatch(_FIELD)
        for name, count in zip(names, counts, strict=True):
            match count:
                case [list() as tagged, int(n)] if tagged == tag(name) and type(n) is int and n >= 0:
                    self._counts[name] = n
                case _:
                    raise state_mismatch(_FIELD)


__all__ = ["many_values", "turned_to_text"]

_SAMPLE = 64
# A key that YAML reads as this text, without quotes.
_PLAIN_KEY = re.compile(r"(?!(?:y|n|yes|no|on|off|true|false|null)\Z)[a-z_]\w*", re.ASCII | re.IGNORECASE)


def many_values(name: Hashable, values: Collection[str], types_key: str = "") -> str:
    """Return what to do about a string input whose values rarely repeat.

    - name: The input.
    - values: Its first values, each an indicator.
    - types_key: The key of a configuration that says how inputs are read; empty: there is none.

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
