"""Series of metrics by the minute: an hour in which all is well, an hour and a half of a fault, and two hours "
"after it."""

from __future__ import annotations

from collections.abc import Callable

BEGIN, END, LENGTH = 60, 150, 270
BEFORE, DURING, AFTER = f"{BEGIN - 5}m", f"{END - 5}m", f"{LENGTH - 5}m"

Series = dict[str, str]
"""The values of each series, as promtool reads them."""


def _by_minute(value: Callable[[int], float | str]) -> str:
    return " ".join(str(value(minute)) for minute in range(LENGTH))


def series(name: str, job: str = "streamkernel", instance: str = "here:9108", **labels: str) -> str:
    """Name a series of a target; a label without a value is none."""
    given = {"job": job, "instance": instance, **labels}
    text = ",".join(f'{key}="{value}"' for key, value in given.items() if value)
    return f"{name}{{{text}}}"


def gauge(well: float, ill: float | None = None) -> str:
    """A value, and another one during the fault."""
    return _by_minute(lambda minute: well if ill is None or not BEGIN <= minute < END else ill)


def counter(well: float, ill: float | None = None) -> str:
    """What is counted by the minute, and during the fault."""

    def total(minute: int) -> float:
        during = min(max(minute - BEGIN, 0), END - BEGIN)
        return well * (minute - during) + (well if ill is None else ill) * during

    return _by_minute(total)


def stamp(stands: bool = False, every: int = 1) -> str:
    """The time of the last of what happens every so many minutes, but for the fault if it stands still meanwhile."""

    def last(minute: int) -> int:
        seen = BEGIN if stands and BEGIN <= minute < END else minute
        return 60 * (seen - seen % every) + 1

    return _by_minute(last)


def lost() -> str:
    """The time of what happens every minute, and 0 during the fault."""
    return _by_minute(lambda minute: 0 if BEGIN <= minute < END else 60 * minute + 1)


def unknown() -> str:
    """The time of what happens every minute, and NaN during the fault, as of what has not happened yet."""
    return _by_minute(lambda minute: "NaN" if BEGIN <= minute < END else 60 * minute + 1)


def vanishing(value: float) -> str:
    """A value that is not there during the fault."""
    return _by_minute(lambda minute: "_" if BEGIN <= minute < END else value)


def moving() -> str:
    """The start of a process that starts over each minute of the fault."""
    return _by_minute(lambda minute: 60 * min(max(minute, BEGIN), END) + 1)
