"""The prediction service, and the journals that store the records it receives."""

from __future__ import annotations

import os
from collections.abc import Iterator

from streamkernel.daemon.components.declaration import Component
from streamkernel.daemon.config.problems import Problem
from streamkernel.daemon.config.schema import Config, JournalSourceConfig

__all__ = ["JOURNAL", "SERVING"]


def _journals(config: Config) -> dict[str, JournalSourceConfig]:
    sources = config.sources.items()
    return {f"{key}.directory": source for key, source in sources if isinstance(source, JournalSourceConfig)}


def _of_journals(config: Config) -> Iterator[Problem]:
    taken = {}
    if config.checkpoint is not None:
        taken[os.path.realpath(config.checkpoint.directory)] = "checkpoint.directory"
    if config.serve_from is not None:
        taken[os.path.realpath(config.serve_from)] = "serve_from"
    for key, source in _journals(config).items():
        folder = os.path.realpath(source.directory)
        if folder in taken:
            yield Problem(key, f"must differ from {taken[folder]}, they are the same folder")
        taken[folder] = key


def _of_service(config: Config) -> Iterator[Problem]:
    serve, metrics = config.serve, config.metrics
    if serve and metrics and serve.port and (serve.host, serve.port) == (metrics.host, metrics.port):
        yield Problem("serve.port", "must differ from metrics.port, each is served by a process of its own")


JOURNAL = Component("journal", lambda config: list(_journals(config)), problems=_of_journals)
SERVING = Component(
    "serving",
    lambda config: [] if config.serve is None else ["serve"],
    excludes={"several_targets": "not with several targets in source.target: leave serve out"},
    problems=_of_service,
)
