"""The slow plain twin of every jitted kernel in streamkernel/compute, written for reading: loops, Python numbers.

A twin has the name of its kernel and returns what the kernel fills in. Tests write `naive.f`, whatever the module.
"""

import importlib
import pkgutil
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:

    def __getattr__(name: str) -> Any: ...


_MODULES = [importlib.import_module(f"{__name__}.{module.name}") for module in pkgutil.iter_modules(__path__)]
for _module in _MODULES:
    for _name, _value in vars(_module).items():
        if getattr(_value, "__module__", None) == _module.__name__ or _name in ("COUNTED_DEVIATION", "TARGETS"):
            globals()[_name] = _value
