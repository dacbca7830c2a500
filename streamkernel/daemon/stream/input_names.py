"""The limit of the input names a model of River's is given: most keep something for each name, and forget none."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from hashlib import blake2b
from typing import Any

__all__ = ["MOST_NAMES", "InputNames"]

MOST_NAMES = 10_000
"""How many names a model is given by default."""

_DIGITS = 16
# This number of names, none of them longer, is kept next to their digests, for messages.
_MOST_TOLD, _LONGEST_TOLD = 1024, 64


class InputNames:
    """The names that a model has learned, at most `most`: the first ones to come.

    Parameters
    ----------
    most
        How many.
    known
        Those learned before, as `to_text` gives them.

    Examples
    --------
    >>> names = InputNames(2)
    >>> names.bound({"a": 1.0, "b": 2.0, "c": 3.0}, learn=True)
    ({'a': 1.0, 'b': 2.0}, 1)
    >>> InputNames(2, names.to_text()).bound({"c": 4.0, "b": 5.0}, learn=True)
    ({'b': 5.0}, 1)

    """

    def __init__(self, most: int = MOST_NAMES, known: str = "") -> None:
        self.most = most
        digests, *told = known.split(" ")
        self._digests = {digests[start : start + _DIGITS] for start in range(0, len(digests), _DIGITS)}
        self._told = [bytes.fromhex(name).decode("utf-8", "replace") for name in told]
        # Those of an earlier process have to come again: the digests tell, for not all names are kept.
        self._known: set[Any] = set()

    @property
    def n_known(self) -> int:
        """How many names were learned."""
        return len(self._digests)

    @property
    def told(self) -> Sequence[str]:
        """The first names that were learned, at most 1,024, without those longer than 64 characters."""
        return self._told

    def knows(self, x: Mapping[str, Any]) -> bool:
        """Return whether all names of a record have come before in this process: then there is nothing to bound."""
        return self._known.issuperset(x)

    def bound(self, x: Mapping[str, Any], learn: bool) -> tuple[Mapping[str, Any], int]:
        """Leave out the names that there is no room for.

        Parameters
        ----------
        x
            The inputs of a record.
        learn
            Whether they are learned: of a record that is predicted only, no name takes any room.

        Returns
        -------
        x, n_ignored
            Those that the model may be given, in their order, and how many others there are.

        """
        left = self.most - len(self._digests)
        new = [name for name in x if name not in self._known]
        if not learn and len(new) <= left:
            return x, 0
        ignored = set()
        for name in new:
            digest = _digest(name)
            if digest in self._digests:
                self._known.add(name)
            elif left <= 0:
                ignored.add(name)
            else:
                left -= 1
                if learn:
                    self._digests.add(digest)
                    self._known.add(name)
                    self._tell(name)
        if not ignored:
            return x, 0
        return {name: value for name, value in x.items() if name not in ignored}, len(ignored)

    def to_text(self) -> str:
        """Return what a checkpoint keeps of them: 16 hexadecimal digits for each, then the bytes of those of `told`."""
        return " ".join(["".join(sorted(self._digests)), *(name.encode().hex() for name in self._told)])

    def _tell(self, name: Any) -> None:
        short = isinstance(name, str) and 0 < len(name) <= _LONGEST_TOLD
        if short and name.isprintable() and len(self._told) < _MOST_TOLD:
            self._told.append(name)


def _digest(name: Any) -> str:
    # A data set of River's may have numbers for names.
    text = name if isinstance(name, str) else f"{type(name).__name__}\0{name!r}"
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=_DIGITS // 2).hexdigest()
