"""The places in the code at which a test can make a process die, by the command that passes them."""

from __future__ import annotations

import re
from pathlib import Path

_ROOT = Path(__file__).parents[2]


def _found(*places: str) -> frozenset[str]:
    """Return the names of the fault points in files and folders."""
    paths = [path for place in places for path in [_ROOT / place, *(_ROOT / place).rglob("*.py")] if path.is_file()]
    pattern = re.compile(r'^ *crash\.point\("([\w-]+)"', re.MULTILINE)
    return frozenset(name for path in paths for name in pattern.findall(path.read_text()))


ALL = _found("streamkernel", "connectors")
"""All there are."""

SERVICE = _found("streamkernel/daemon/serve")
"""Those of `streamkernel serve`, which no run passes."""

WARM_START = _found("streamkernel/daemon/warm_start.py")
"""Those that only a run with a warm start passes."""

SPARK = _found("streamkernel/spark")
"""Those that only a Spark job passes; tests/spark/ kills it there."""

RUN = ALL - SERVICE - WARM_START - SPARK
"""Those that every run passes, whatever it reads."""
