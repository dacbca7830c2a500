"""What the command line asks for: whole numbers, and streams by their names."""

import argparse
from collections.abc import Callable, Iterable

from benchmarks.streams import Stream, readable


def at_least(least: int) -> Callable[[str], int]:
    """Read whole numbers from so many up, as the `type` of an argument of `argparse`."""

    def number(text: str) -> int:
        if not text.isdecimal() or int(text) < least:
            raise argparse.ArgumentTypeError(f"{text!r} is not a whole number of at least {least}")
        return int(text)

    return number


def of_names(streams: Iterable[Stream], names: Iterable[str]) -> list[Stream]:
    """The streams of these names that can be read.

    Raises
    ------
    SystemExit
        A name is none, or no stream can be read: nothing is measured then, and no report written over another one.

    """
    known = {stream.name: stream for stream in streams}
    names = list(dict.fromkeys(names))
    if unknown := [name for name in names if name not in known]:
        raise SystemExit(f"no stream is called {', '.join(unknown)}; there are {', '.join(known)}")
    if not (found := readable(known[name] for name in names)):
        raise SystemExit("no stream is left: give the folder of their files by --data, or other names by --streams")
    return found
