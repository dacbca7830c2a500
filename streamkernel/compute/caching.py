"""Where compiled code is cached: in the folders that numba takes, also such as can only be read.

numba passes over a folder that it cannot write to, whatever is in it: what an image holds whose file system is mounted
read-only, or that another user built, would be compiled anew at every start.

This rests on parts of numba that are not public. Where they are others, its own cache is used.
"""

from pathlib import Path
from typing import Any

import llvmlite.binding
from numba.core import caching, config

__all__ = ["Cache"]

_BASE: Any = caching.FunctionCache
_IMPLEMENTATION: Any = caching.FunctionCache._impl_class
_INDEX: Any = caching.IndexDataCacheFile


def _or_readable(locator: Any) -> Any:
    """Let a numba's locator take a folder that cannot be written to, if it holds code of the function for this CPU."""

    class Locator(locator):  # type: ignore[misc]
        def __init__(self, function: Any, file: str) -> None:
            super().__init__(function, file)
            self._stem = f"{Path(file).stem}.{function.__qualname__}".replace("<", "").replace(">", "")

        def ensure_cache_path(self) -> None:
            try:
                super().ensure_cache_path()
            except OSError:
                if not self._holds_code():
                    raise

        def _holds_code(self) -> bool:
            folder = Path(self.get_cache_path())
            name = getattr(config, "CPU_NAME", None) or llvmlite.binding.get_host_cpu_name()
            for index in folder.glob(f"{self._stem}-{self.get_disambiguator()}.*.nbi"):
                file = _INDEX(str(folder), index.stem, self.get_source_stamp())
                try:
                    # By signature, (triple, CPU, features) and hash of the code.
                    if any(cpu == name for _, (_, cpu, _), _ in file._load_index()):
                        return True
                except Exception:  # unpickling raises whatever the bytes make it raise
                    continue
            return False

    return Locator


class _ReadableImplementation(_IMPLEMENTATION):  # type: ignore[misc]
    _locator_classes = tuple(map(_or_readable, _IMPLEMENTATION._locator_classes))


class Cache(_BASE):  # type: ignore[misc]
    """The cache of a function's compiled code, numba's own, which is read also where it cannot be written."""

    _impl_class = _ReadableImplementation
