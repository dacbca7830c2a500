"""One way to compile: lazily, cached on disk where a cache folder can be written, by one process at a time."""

import contextlib
import fcntl
import functools
import gc
import logging
import os
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar, cast

import numba
import numpy as np
from numba.core.compiler_lock import global_compiler_lock
from numba.core.errors import NumbaError
from numba.core.registry import CPUDispatcher

Array = np.ndarray[Any, np.dtype[Any]]
Function = TypeVar("Function", bound=Callable[..., Any])

# The slowest kernel takes half a minute, on a busy machine minutes; a stalled one must not hold others up.
LOCK_SECONDS = 300.0
_LOOK_SECONDS = 0.02
# Objects made between two searches for garbage while something is compiled: a search after each 700 or 2,000, as Python
# has it, finds nearly all in use.
_COLLECT_AFTER = 10_000

_warned = _announced = False
_LOG = logging.getLogger(__name__)


def _import_linking() -> Any:
    """How compiled code is linked to what it calls; None where numba is to do it in its own way."""
    try:
        from streamkernel.compute import linking

        linking.check()
    except (AttributeError, ImportError):
        return None
    return linking


def _import_cache() -> Any:
    """The cache of a function's compiled code; None where numba is to take its own."""
    try:
        from streamkernel.compute.caching import Cache
    except (AttributeError, ImportError):
        return None
    return Cache


_LINKING = _import_linking()
_CACHE = _import_cache()


def jit(function: Function) -> Function:
    """Compile a function at its first call, strict IEEE arithmetic, cached on disk.

    Nothing is compiled at import. Without a cache folder that can be written, or that holds the function, it is
    compiled again in every process, after one warning.
    """
    return _compile(function, fastmath=False)


def jit_reduction(function: Function) -> Function:
    """Compile a sum that may be reordered into vector lanes.

    Only for sums whose last bits are nobody's contract across machines: one machine always reorders them alike.
    """
    return _compile(function, fastmath={"reassoc", "contract", "nsz"})


def jit_long(function: Function) -> Function:
    """Compile like `jit` a function that may run for milliseconds or more: other Python threads run meanwhile.

    The GIL is released, so that the daemon's probes and scrapes are answered and its connections kept. Not for what
    takes microseconds: to take the GIL back may wait for another thread's turn.
    """
    return _compile(function, fastmath=False, nogil=True)


def _compile(function: Function, fastmath: bool | set[str], nogil: bool = False) -> Function:
    compiled = functools.partial(numba.njit, fastmath=fastmath, error_model="numpy", no_cfunc_wrapper=True, nogil=nogil)
    dispatcher = compiled()(function)
    if isinstance(dispatcher, CPUDispatcher):  # not where NUMBA_DISABLE_JIT leaves functions as they are
        if _CACHE:
            setattr(dispatcher, "_cache", _CACHE(function))  # noqa: B010
        else:
            with contextlib.suppress(RuntimeError):
                dispatcher.enable_caching()
        _compile_alone(dispatcher)
        _announce(dispatcher)
        # Sums that may be reordered are optimized by themselves, and so are the same in every caller.
        if _LINKING and not fastmath:
            _LINKING.link_calls_of(dispatcher, functools.partial(compiled(), function))
    return cast(Function, dispatcher)


def _announce(dispatcher: Any) -> None:
    """Log, once, that there is something to compile, and warn, once, where it cannot be cached."""
    compile_anew = dispatcher._compiler.compile

    def compile_linked(arguments: Any, result: Any) -> Any:
        global _announced, _warned
        kept = dispatcher.stats.cache_path
        if not _announced:
            _announced = True
            _LOG.warning(
                "compiling for this machine, which takes some seconds at the first records of a model; %s",
                f"the result is kept in {kept}" if kept and os.access(kept, os.W_OK) else "the result is not kept",
            )
        if not kept and not _warned:
            _warned = True
            # A warning turned into an error must not leave half a record learned: the log has said it.
            why = getattr(dispatcher._cache, "why", "") or "no folder can be written"
            with contextlib.suppress(RuntimeWarning):
                warnings.warn(
                    f"compiled code is not cached and every start compiles again ({why}): "
                    "set NUMBA_CACHE_DIR to a writable folder",
                    RuntimeWarning,
                    stacklevel=2,
                )
        with _rarely_collected(), _LINKING.linking() if _LINKING else contextlib.nullcontext():
            return compile_anew(arguments, result)

    dispatcher._compiler.compile = compile_linked


@contextlib.contextmanager
def _rarely_collected() -> Iterator[None]:
    """Let Python look for garbage less often; not where it is turned off, or rarer already."""
    before = gc.get_threshold()
    if not 0 < before[0] < _COLLECT_AFTER:
        yield
        return
    gc.set_threshold(_COLLECT_AFTER, *before[1:])
    try:
        yield
    finally:
        gc.set_threshold(*before)


def _compile_alone(dispatcher: Any) -> None:
    """Let one process at a time ask the cache for a function and, where it is not there, compile and store it.

    numba's index of a function's signatures is read, added to and written without a lock: of two processes that store
    different ones at the same moment, one's code may end up under the other's signature.

    An index that cannot be read is removed: an earlier release left it, which pickled classes of names that are no
    more, or a process that was killed. What cannot be stored, on a full disk, is compiled all the same.
    """
    compile_signature = dispatcher.compile

    def compile_alone(signature: Any) -> Any:
        if not dispatcher.stats.cache_path:
            return compile_signature(signature)
        folder = Path(dispatcher.stats.cache_path)
        path = folder / f"{dispatcher.__module__}.{dispatcher.__name__}.lock"
        # Threads first: a process that holds a file waits for none of its own threads.
        with global_compiler_lock, _locked(path):
            known = len(dispatcher.overloads)
            try:
                return compile_signature(signature)
            except NumbaError:
                raise
            except Exception:  # unpickling raises whatever the bytes make it raise
                if len(dispatcher.overloads) > known:  # compiled, and not stored: the index is sound
                    return compile_signature(signature)
                for index in folder.glob(f"{dispatcher.__module__.rpartition('.')[2]}.{dispatcher.__name__}-*.nbi"):
                    try:
                        index.unlink(missing_ok=True)
                    except OSError:  # in a folder that may only be read
                        dispatcher._cache.disable()
                return compile_signature(signature)

    dispatcher.compile = compile_alone


@contextlib.contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Hold a file's lock, where it can be had: nothing is stored in a folder that may only be read."""
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
    except OSError:
        yield
        return
    try:
        deadline = time.monotonic() + LOCK_SECONDS
        while not _taken(descriptor) and time.monotonic() < deadline:
            time.sleep(_LOOK_SECONDS)
        yield
    finally:
        os.close(descriptor)


def _taken(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True
