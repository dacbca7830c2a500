"""The instruction set that code is compiled for: a level of x86-64 that this processor has, not all it can do.

Code of a level runs on every processor that has the level, and computes the same bits there. So it can be compiled
once, shipped, and shared by machines.
"""

import os
from typing import Any

import llvmlite.binding
from numba.core import config as numbas_config

__all__ = ["ATTRIBUTES", "LEVEL", "LEVELS", "VARIABLE"]

# numba sets these from its environment, so that no type checker sees them.
_CONFIG: Any = numbas_config

#: The environment variable that names a level, or `native` for all that this processor can do.
VARIABLE = "STREAMKERNEL_CPU"
#: What each level adds to the one below it, by LLVM's names.
LEVELS = {
    "x86-64-v4": ("avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"),
    "x86-64-v3": ("avx2", "bmi", "bmi2", "f16c", "fma", "lzcnt", "movbe"),
}


def _level() -> str | None:
    """The highest level that this processor has; None where numba's own choice holds, which users can set."""
    chosen = os.environ.get(VARIABLE)
    if chosen in LEVELS:
        return chosen
    if chosen not in (None, "", "native"):
        raise ValueError(f"{VARIABLE}: {chosen!r} is not a level. Use one of {', '.join(LEVELS)}, native")
    if chosen == "native" or _CONFIG.CPU_NAME or _CONFIG.CPU_FEATURES is not None or not _CONFIG.ENABLE_AVX:
        return None
    has = llvmlite.binding.get_host_cpu_features()
    if not all(has.get(feature) for feature in LEVELS["x86-64-v3"]):
        return None
    return "x86-64-v4" if all(has.get(feature) for feature in LEVELS["x86-64-v4"]) else "x86-64-v3"


#: The level of this process.
LEVEL = _level()
#: The attributes by which LLVM compiles a function for the level; empty features, or those of this processor are added.
ATTRIBUTES = f'"target-cpu"="{LEVEL}" "target-features"=""' if LEVEL else ""
