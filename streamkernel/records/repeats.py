"""The cardinality limit of string inputs: how many indicators one may have, by how often its values come again.

A string input whose values hardly ever come again, such as an order number or a time stamp, identifies its record: an
indicator for each value would tell the model nothing, and slow it down with every record.
"""

import logging
from collections.abc import Collection, Hashable, Sequence
from typing import Any

from streamkernel.fields import state_mismatch
from streamkernel.records.text_advice import many_values
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

    Attributes
    ----------
    types_key
        The key of a configuration that says how inputs are read, for warnings; empty: there is none.

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
