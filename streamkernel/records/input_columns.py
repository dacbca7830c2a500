"""The columns of named inputs: each a number, or the indicator of one value of a string input.

Columns are found by name, so neither the order of a record's keys nor the moment an input first appears matters to the
features: those are drawn by the key of the name.
"""

from collections import Counter
from collections.abc import Hashable, Iterable, Iterator
from typing import Any

import numpy as np

from streamkernel.fields import state_mismatch
from streamkernel.input_keys import key_of
from streamkernel.state import Array, State, untag

_NO_KEYS = np.zeros(0, np.uint64)


class InputColumns:
    """The columns in the order of arrival, found by name, as scikit-learn's `DictVectorizer` finds them.

    Iterating yields each as ["number", name] or ["indicator", name, value]; names as `tag` has them.

    Attributes
    ----------
    numbers
        The index of the column of each number, by name.
    indicators
        The indexes of the indicators of each string input, by name and value.

    """

    def __init__(self) -> None:
        self.clear()

    def clear(self) -> None:
        """Remove all columns."""
        self.numbers: dict[Hashable, int] = {}
        self.indicators: dict[Hashable, dict[str, int]] = {}
        self._tagged: list[list[Any]] = []
        self._keys: list[int] = []
        self._taken: set[int] = set()
        self._key_array = _NO_KEYS

    def __len__(self) -> int:
        return len(self._tagged)

    def __iter__(self) -> Iterator[list[Any]]:
        return iter(self._tagged)

    @property
    def keys(self) -> Array:
        """The columns' keys, uint64 of shape (d,)."""
        if len(self._key_array) != len(self._keys):
            self._key_array = np.array(self._keys, np.uint64)
        return self._key_array

    @property
    def names(self) -> list[str]:
        """The names of the columns as text, `name` or, of an indicator, `name=value`."""
        return [str(untag(name[1])) + (f"={name[2]}" if name[0] == "indicator" else "") for name in self]

    @property
    def plain_names(self) -> tuple[Any, ...] | None:
        """The names of all columns in their order if all are numbers; else None."""
        return tuple(self.numbers) if len(self.numbers) == len(self) else None

    def arrivals(self, unknown: Iterable[tuple[list[Any], float]]) -> list[tuple[int, list[Any], float]]:
        """The columns, with a value each, that may be added: with their keys, in the order of these.

        An input is ignored where a column has its key. Of two of one key the first by name is taken.
        """
        found: dict[int, tuple[list[Any], float]] = {}
        for tagged, value in unknown:
            key = key_of(tagged)
            if key not in self._taken and (key not in found or repr(tagged) < repr(found[key][0])):
                found[key] = tagged, value
        return [(key, *found[key]) for key in sorted(found)]

    def n_values(self) -> dict[Hashable, int]:
        """The number of indicators of each string input, in the order of arrival."""
        names = (untag(tagged[1]) for tagged in self if tagged[0] == "indicator")
        return dict(Counter(names))

    def append(self, tagged: list[Any]) -> None:
        """Add a column, given as iterating yields it."""
        column = len(self)
        name = untag(tagged[1])
        if tagged[0] == "indicator":
            self.indicators.setdefault(name, {})[tagged[2]] = column
        else:
            self.numbers[name] = column
        self._tagged.append(tagged)
        self._keys.append(key_of(tagged))
        self._taken.add(self._keys[-1])

    def load_state(self, state: State) -> None:
        """Take the columns that the state of `Inputs` lists; ValueError where they do not fit."""
        self.clear()
        columns = state.get("columns")
        for name in columns if isinstance(columns, list) else [columns]:
            match name:
                case ["number", tagged] | ["indicator", tagged, str()] if _is_tag(tagged):
                    self.append(list(name))
                case _:
                    raise state_mismatch("columns")
        if len(set(self._keys)) != len(self):
            raise state_mismatch("columns")


def _is_tag(tagged: Any) -> bool:
    try:
        untag(tagged)
    except ValueError:
        return False
    return True
