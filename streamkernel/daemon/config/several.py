"""Sources of several files in a configuration: which they are, and what they cannot be together with."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

from streamkernel.connectors.files.names import is_pattern

__all__ = ["conflicts_of_files", "is_several", "paths_of"]


def paths_of(section: Any) -> list[str]:
    """Return the paths and patterns of a section; none where it is no file.

    Examples
    --------
    >>> from streamkernel.daemon.config.schema import CsvSourceConfig
    >>> paths_of(CsvSourceConfig(kind="csv", path="a.csv")), paths_of(CsvSourceConfig(kind="csv", path=["a", "b"]))
    (['a.csv'], ['a', 'b'])

    """
    path = getattr(section, "path", None)
    return [] if path is None else list(path) if isinstance(path, list) else [path]


def is_several(section: Any) -> bool:
    """Return whether the section of a source is one of several files, be it that it is watched."""
    paths = paths_of(section)
    return (
        getattr(section, "watch", False)
        or isinstance(getattr(section, "path", None), list)
        or any(map(is_pattern, paths))
    )


def conflicts_of_files(key: str, section: Any) -> Iterator[str]:
    """Yield a line for each setting of the source at a key that its paths rule out."""
    folder = next(filter(os.path.isdir, paths_of(section)), None)
    if folder is not None and not section.watch:
        pattern = os.path.join(folder, f"*.{section.kind}")
        yield (
            f"{key}.path: {folder} is a directory: give a pattern such as {pattern} to read its files, or set watch: "
            "true to wait for more as well"
        )
        return
    if not is_several(section):
        return
    if getattr(section, "follow", False):
        yield f"{key}.follow: not with several files: watch: true waits for new files, follow for more of a single one"
    if section.watch and isinstance(section.path, list):
        yield f"{key}.watch: one directory or pattern can be watched, not a list: give a pattern that has them all"
