"""The command line of a benchmark: the options that most share, and one thread for arithmetic."""

import argparse
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from threadpoolctl import threadpool_limits

RESULTS = Path(__file__).parent / "results"
#: Options of benchmarks that read the streams' files.
DATA: dict[str, Any] = {"type": Path, "default": Path("data"), "help": "folder of the optional files (data)"}
NAMES: dict[str, Any] = {"type": lambda text: text.split(","), "help": "names, separated by commas", "metavar": "A,B"}
_THREADS = "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS"


def at_least(least: int) -> Callable[[str], int]:
    """Return a `type` for `argparse`: whole numbers from `least` on."""

    def number(text: str) -> int:
        if not text.isdecimal() or int(text) < least:
            raise argparse.ArgumentTypeError(f"{text!r} is not a whole number of at least {least}")
        return int(text)

    return number


def asked(doc: str | None, *, quick: str = "", threads: int | None = 1, **more: Any) -> argparse.Namespace:
    """Read the command line of a benchmark.

    Parameters
    ----------
    doc
        The benchmark's docstring.
    quick
        What ``--quick`` does. Without a text there is no such option.
    threads
        How many threads the process and its children have for arithmetic. None does not limit them.
    more
        Further options by name: the default of a positive number, or the arguments of `add_argument`.

    """
    parser = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, given in more.items():
        kind = at_least(1) if isinstance(given, int) else type(given)
        settings = given if isinstance(given, dict) else {"type": kind, "default": given, "help": f"({given:,})"}
        parser.add_argument(f"--{name.replace('_', '-')}", **settings)
    if quick:
        parser.add_argument("--quick", action="store_true", help=quick)
    parser.add_argument("--out", type=Path, default=RESULTS, help="folder of the page (benchmarks/results)")
    if threads is not None:
        os.environ.update(dict.fromkeys(_THREADS, str(threads)))
        threadpool_limits(threads)
    return parser.parse_args()
