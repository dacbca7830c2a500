"""numba's options of a function's compilation, quick to compare.

For every operation numba looks up whether it has been compiled before, under these options, many times for
a model's first record. numba's own class makes dicts of all options for that, on both sides.
"""

# mypy: disable-error-code="no-untyped-call"

from typing import Any

from numba.core.compiler import Flags


class QuickFlags(Flags):
    """Options that are equal to numba's, and hash as these, wherever they are set to the same.

    Without a wrapper for calls from C: nobody asks for one of what is compiled here.
    """

    __slots__ = ()

    def __init__(self, copy_from: Any = None) -> None:
        super().__init__(copy_from)
        if copy_from is None:
            self.no_cfunc_wrapper = True  # type: ignore[assignment, misc]

    def __hash__(self) -> int:
        return _HASH

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Flags):
            return NotImplemented
        mine, others = self._values, other._values
        return mine == others or all(getattr(self, name) == getattr(other, name) for name in {**mine, **others})


#: numba hashes the names of all options, whatever they are set to.
_HASH = hash(Flags())
