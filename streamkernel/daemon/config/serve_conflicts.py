"""Conflicts of settings about journals and the prediction service."""

from __future__ import annotations

import os
from collections.abc import Iterator

from streamkernel.daemon.config.schema import Config, JournalSourceConfig

__all__ = ["serve_conflicts"]


def serve_conflicts(config: Config) -> Iterator[str]:
    """Yield a line for each journal that another setting rules out, and for a port that is used twice."""
    taken = {}
    if config.checkpoint is not None:
        taken[os.path.realpath(config.checkpoint.directory)] = "checkpoint.directory"
    if config.serve_from is not None:
        taken[os.path.realpath(config.serve_from)] = "serve_from"
    for key, source in config.sources.items():
        if isinstance(source, JournalSourceConfig):
            folder = os.path.realpath(source.directory)
            if folder in taken:
                yield f"{key}.directory: must differ from {taken[folder]}, they are the same folder"
            taken[folder] = f"{key}.directory"
    if config.serve is None or config.metrics is None:
        return
    if config.serve.port and (config.serve.host, config.serve.port) == (config.metrics.host, config.metrics.port):
        yield "serve.port: must differ from metrics.port, each is served by a process of its own"
