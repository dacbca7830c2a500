"""Where compiled code is found: shipped with the package, or in the folders that numba caches in.

The key of an entry is the level of the instruction set, so one entry serves all processors of that level. An entry is
of the sources as they are: a change of any file of this folder makes all entries stale, since functions are compiled
into their callers.

numba passes over a folder that it cannot write to. Here such a folder is read: an image may be mounted read-only, or
another user may own it.

Code is loaded without what only a compiler needs: the bitcode, numba's runtime as LLVM's code, and the modules of
Python that the code was compiled from.

This rests on parts of numba that are not public. Where they differ, numba's own cache is used.
"""

import functools
import hashlib
import pickle
import sys
from pathlib import Path
from typing import Any

import llvmlite
import llvmlite.binding
from numba.core import caching, config, environment, runtime
from numba.core.codegen import JITCodeLibrary

from streamkernel.compute.levels import LEVEL

__all__ = ["SHIPPED", "Cache"]

_BASE: Any = caching.FunctionCache
_IMPLEMENTATION: Any = caching.FunctionCache._impl_class
_INDEX: Any = caching.IndexDataCacheFile
_IN_TREE: Any = caching.InTreeCacheLocator
_CONFIG: Any = config
_ENVIRONMENT: Any = environment
_LIBRARY: Any = JITCodeLibrary
_RUNTIME: Any = runtime
_FOLDER = Path(__file__).parent

#: The folder of a wheel's compiled code. A checkout has none.
SHIPPED = _FOLDER / "shipped"


@functools.cache
def _stamp() -> str:
    """What all compiled code depends on: the sources of this folder, and the compiler's version."""
    digest = hashlib.sha256(llvmlite.__version__.encode())
    for path in sorted(_FOLDER.glob("*.py")):
        digest.update(path.name.encode() + path.read_bytes())
    return digest.hexdigest()


def _cpu() -> str:
    """The level or the processor that an entry of this process is compiled for."""
    return LEVEL or _CONFIG.CPU_NAME or llvmlite.binding.get_host_cpu_name()


def _or_readable(locator: Any) -> Any:
    """Let a numba's locator take a folder that cannot be written to, if it holds code of the function for this CPU."""

    class Locator(locator):  # type: ignore[misc]
        def __init__(self, function: Any, file: str) -> None:
            super().__init__(function, file)
            self._file = Path(file)
            self._stem = f"{self._file.stem}.{function.__qualname__}".replace("<", "").replace(">", "")

        def get_source_stamp(self) -> Any:
            return _stamp() if self._file.parent == _FOLDER else super().get_source_stamp()

        def ensure_cache_path(self) -> None:
            try:
                super().ensure_cache_path()
            except OSError:
                if not self._holds_code():
                    raise

        def _holds_code(self) -> bool:
            folder = Path(self.get_cache_path())
            for index in folder.glob(f"{self._stem}-{self.get_disambiguator()}.*.nbi"):
                file = _INDEX(str(folder), index.stem, self.get_source_stamp())
                try:
                    # By signature, (triple, CPU, features) and hash of the code.
                    if any(cpu == _cpu() for _, (_, cpu, _), _ in file._load_index()):
                        return True
                except Exception:  # unpickling raises whatever the bytes make it raise
                    continue
            return False

    return Locator


class _Shipped(_IN_TREE):  # type: ignore[misc]
    """The folder of shipped code, where no other can be written: it is read, and nothing is stored."""

    def __init__(self, function: Any, file: str) -> None:
        super().__init__(function, file)
        self._cache_path = str(SHIPPED)

    def get_source_stamp(self) -> Any:
        return _stamp()

    def ensure_cache_path(self) -> None:
        if not SHIPPED.is_dir():
            raise OSError(f"{SHIPPED} is not there")

    @classmethod
    def from_function(cls, function: Any, file: str) -> Any:
        return cls(function, file) if SHIPPED.is_dir() and Path(file).parent == _FOLDER else None


class _Loaded(_LIBRARY):  # type: ignore[misc]
    """Loaded machine code, with its bitcode for compiled code that links it in: that is parsed when it is asked for."""

    _shared_module: Any

    @classmethod
    def _unserialize(cls, codegen: Any, state: Any) -> Any:
        name, _, (code, bitcode) = state
        self = cls(codegen, name)
        self._bitcode = bitcode
        self.enable_object_caching()
        self._set_compiled_object(code)
        self._finalize_final_module()
        return self

    def _get_module_for_linking(self) -> Any:
        if self._shared_module is None:
            self._shared_module = llvmlite.binding.parse_bitcode(self._bitcode)
        return self._shared_module

    def get_pointer_to_function(self, name: str) -> Any:
        return self._codegen._engine.get_function_address(name)


class _ReadableImplementation(_IMPLEMENTATION):  # type: ignore[misc]
    _locator_classes = (*map(_or_readable, _IMPLEMENTATION._locator_classes), _Shipped)

    def rebuild(self, target_context: Any, payload: Any) -> Any:
        codegen = target_context.codegen()
        before, codegen._library_class = codegen._library_class, _Loaded
        try:
            return super().rebuild(target_context, payload)
        finally:
            codegen._library_class = before


class _Unpickler(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        return _environment if name == "_rebuild_env" else super().find_class(module, name)


def _environment(module: str, constants: Any, name: str) -> Any:
    """What is around a function. Its module would be imported; only what numba leaves to Python looks into that."""
    return _ENVIRONMENT._rebuild_env(module if module in sys.modules else __name__, constants, name)


class _Index(_INDEX):  # type: ignore[misc]
    def _load_data(self, name: str) -> Any:
        with open(self._data_path(name), "rb") as file:
            return _Unpickler(file).load()


@functools.cache
def _register_runtime() -> None:
    """Let loaded code find what numba's runtime has in C; what that has in LLVM's code is linked in already."""
    for name, address in _RUNTIME._nrt_python.c_helpers.items():
        llvmlite.binding.add_symbol(name if name.startswith("_") else f"NRT_{name}", address)


class Cache:
    """The cache of a function, made when it is first asked: most functions are only compiled into others.

    - why: Why nothing can be cached; empty where it can.
    """

    def __init__(self, function: Any) -> None:
        self._function = function
        self.why = ""

    @functools.cached_property
    def _cache(self) -> Any:
        try:
            return _Cache(self._function)
        except RuntimeError as error:  # there is no folder
            self.why = str(error)
            return caching.NullCache()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._cache, name)


class _Cache(_BASE):  # type: ignore[misc]
    """numba's own cache, with what is shipped read before it."""

    _impl_class = _ReadableImplementation

    def __init__(self, function: Any) -> None:
        super().__init__(function)
        self._cache_file.__class__ = _Index
        self._shipped = _Index(str(SHIPPED), self._impl.filename_base, _stamp())
        self._is_kept = not isinstance(self._impl.locator, _Shipped)

    @property
    def cache_path(self) -> str | None:
        """Where what is compiled is stored; None where no folder can be written."""
        return self._cache_path if self._is_kept else None

    def _index_key(self, signature: Any, codegen: Any) -> Any:
        signature, (triple, cpu, features), hashes = super()._index_key(signature, codegen)
        return signature, ((triple, LEVEL, "") if LEVEL else (triple, cpu, features)), hashes

    def _save_overload(self, signature: Any, data: Any) -> None:
        if self._is_kept:
            super()._save_overload(signature, data)

    def load_overload(self, signature: Any, target_context: Any) -> Any:
        # numba imports all that it can compile before it looks, and again before it compiles.
        _register_runtime()
        with self._guard_against_spurious_io_errors():
            return self._load_overload(signature, target_context)

    def _load_overload(self, signature: Any, target_context: Any) -> Any:
        data = self._shipped.load(self._index_key(signature, target_context.codegen())) if self._enabled else None
        return (
            super()._load_overload(signature, target_context)
            if data is None
            else self._impl.rebuild(target_context, data)
        )
