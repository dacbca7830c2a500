"""One way to compile: lazily, cached on disk where a cache folder can be written."""

import warnings
from collections.abc import Callable
from typing import Any, TypeVar, cast

import numba

Function = TypeVar("Function", bound=Callable[..., Any])

_warned = False


def jit(function: Function) -> Function:
    """Compile a function at its first call, strict IEEE arithmetic, cached on disk.

    Nothing is compiled at import. Without a writable cache folder (a read-only install) numba refuses `cache=True` at
    import; the function is then compiled anew in every process, after one warning.
    """
    return _compile(function, fastmath=False)


def jit_reduction(function: Function) -> Function:
    """Compile a sum that may be reordered into vector lanes.

    Only for sums whose last bits are nobody's contract across machines: one machine always reorders them alike.
    """
    return _compile(function, fastmath={"reassoc", "contract", "nsz"})


def _compile(function: Function, fastmath: bool | set[str]) -> Function:
    global _warned
    try:
        return cast(Function, numba.njit(cache=True, fastmath=fastmath, error_model="numpy")(function))
    except RuntimeError as error:
        if not _warned:
            warnings.warn(
                f"compiled code is not cached and every start compiles anew ({error}): "
                "set NUMBA_CACHE_DIR to a writable folder",
                RuntimeWarning,
                stacklevel=3,
            )
            _warned = True
        return cast(Function, numba.njit(fastmath=fastmath, error_model="numpy")(function))
