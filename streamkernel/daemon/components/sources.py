"""The files, the inputs and the targets of sources."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

from streamkernel.connectors.target_columns import names_of
from streamkernel.daemon.components.declaration import Component
from streamkernel.daemon.components.late_labels import join_key
from streamkernel.daemon.config.inputs import input_problems
from streamkernel.daemon.config.problems import Problem
from streamkernel.daemon.config.schema import Config
from streamkernel.daemon.config.sources import is_list, is_several, paths_of

__all__ = ["SEVERAL_TARGETS", "SOURCES", "own_target"]


def own_target(config: Config, section: str) -> Any:
    """Return the targets that the records of a source must bring; None where labels come late or nothing is learned."""
    unlabeled = section == "source" and (config.labels is not None or config.mode == "predict")
    return None if unlabeled else getattr(config.sources[section], "target", None)


def _problems(config: Config) -> Iterator[Problem]:
    for key, source in config.sources.items():
        yield from _of_files(key, source)
        if (columns := getattr(source, "inputs", None)) is not None:
            joined_by = None if key == "warm_start.source" else join_key(config)
            yield from input_problems(f"{key}.inputs", columns, names_of(getattr(source, "target", None)), joined_by)


def _of_files(key: str, section: Any) -> Iterator[Problem]:
    folder = next(filter(os.path.isdir, paths_of(section)), None)
    if folder is not None and not section.watch:
        pattern = os.path.join(folder, f"*.{section.kind}")
        why = f"{folder} is a directory: give a pattern such as {pattern} to read its files, or set watch: true to wait"
        yield Problem(f"{key}.path", f"{why} for more as well")
    elif is_several(section):
        if getattr(section, "follow", False):
            why = "not with several files: watch: true waits for new files, follow for more of a single one"
            yield Problem(f"{key}.follow", why)
        if section.watch and isinstance(section.path, list):
            why = "one directory or pattern can be watched, not a list: give a pattern that has them all"
            yield Problem(f"{key}.watch", why)


SEVERAL_TARGETS = Component("several_targets", lambda config: ["source.target"] if is_list(config.source) else [])
SOURCES = Component("sources", lambda config: list(config.sources), problems=_problems)
