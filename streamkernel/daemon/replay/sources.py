"""The sources of a configuration as a replay needs them: to decode records, while their positions stay."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from contextlib import ExitStack
from typing import NamedTuple

from streamkernel.connectors.files.csv import CsvSource
from streamkernel.connectors.files.places import FilePlace
from streamkernel.connectors.ports import Position, Source, SourceError
from streamkernel.daemon.assembly.connectors import let_pass, make_source
from streamkernel.daemon.base.errors import DaemonError
from streamkernel.daemon.config.plan import Plan
from streamkernel.daemon.config.schema import CsvSourceConfig, KafkaSourceConfig
from streamkernel.daemon.config.sources import is_several
from streamkernel.daemon.run_state.header import sources_of
from streamkernel.daemon.run_state.start import Start

__all__ = ["SECTIONS", "ReplaySource", "open_sources"]

_log = logging.getLogger(__name__)

SECTIONS = {"records": "source", "labels": "labels.source"}
"""The section of each source that letters may be of."""


class ReplaySource(NamedTuple):
    """A source of a configuration.

    Attributes
    ----------
    source
        What decodes its records.
    positions
        Where each of its partitions continues, which a replay leaves as it is.
    topic
        Whether it is a topic.

    """

    source: Source
    positions: Mapping[int, Position]
    topic: bool


def open_sources(plan: Plan, start: Start, wanted: Mapping[str, int], stack: ExitStack) -> dict[str, ReplaySource]:
    """Make what decodes the letters of each source that has any."""
    made = {}
    places = {one.section: one.positions for one in sources_of(start, plan)}
    for name in wanted:
        key = SECTIONS[name]
        written = plan.config.sources[key]
        # One that keeps nothing next to the checkpoint, and waits for nothing.
        still = written.model_copy(update={"follow": False}) if hasattr(written, "follow") else written
        source = stack.enter_context(make_source(still, plan.config, key))
        if name == "records":
            let_pass(source, plan.config)
        positions = places[key] if key == "source" else dict(places[key])
        if is_several(written):
            source.open(positions)
        elif isinstance(written, CsvSourceConfig):
            _read_header(source, written.path, key, positions)
        if isinstance(written, KafkaSourceConfig) and written.include:
            _log.warning(
                "%s.include: a dead letter has only the value of its message, so these inputs are missing", key
            )
        made[name] = ReplaySource(source, positions, isinstance(written, KafkaSourceConfig))
    return made


def _read_header(source: Source, path: str, key: str, positions: Mapping[int, Position]) -> None:
    """Learn what the fields of the records of a CSV file are: by its first line, or by its place in the checkpoint."""
    problem = "standard input is gone"
    place = FilePlace.of(positions[0]) if 0 in positions else None
    try:
        if place is not None and place.header is not None and isinstance(source, CsvSource):
            source.use_header(place.header.encode("latin-1"))  # a file that was truncated while it was followed
            return
        if path != "-":
            source.open()
            return
    except SourceError as error:
        problem = str(error)
    raise DaemonError(
        f"{problem}: the column names are in its first line: use a file that begins with that line, for example "
        f"with --set {key}.path=FILE"
    )
