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
    chosen = os.environ.get(VARIABLE) or None
    if chosen not in (None, "native", *LEVELS):
        raise ValueError(f"{VARIABLE}: {chosen!r} is not a level. Use one of {', '.join(LEVELS)}, native")
    has = llvmlite.binding.get_host_cpu_features()
    possible = [level for level in LEVELS if all(has.get(feature) for feature in _features(level))]
    if chosen in LEVELS:
        # A processor named for numba is another one, for which this one only compiles.
        if chosen not in possible and not _CONFIG.CPU_NAME:
            raise ValueError(f"{VARIABLE}: this processor cannot run {chosen}. Use {', '.join([*possible, 'native'])}")
        return chosen
    if chosen == "native" or _CONFIG.CPU_NAME or _CONFIG.CPU_FEATURES is not None or not _CONFIG.ENABLE_AVX:
        return None
    return possible[0] if possible else None


def _features(level: str) -> list[str]:
    """What a level has: what it adds, and what all below it add."""
    order = list(LEVELS)
    return [feature for below in order[order.index(level) :] for feature in LEVELS[below]]


#: The level of this process.
LEVEL = _level()
#: The attributes by which LLVM compiles a function for the level; empty features, or those of this processor are added.
ATTRIBUTES = f'"target-cpu"="{LEVEL}" "target-features"=""' if LEVEL else ""
