"""The main source as a component of the state: its settings, its counts, and where its partitions continue."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from streamkernel.daemon.base.counts import RecordCounts
from streamkernel.daemon.config.inputs import InputsConfig
from streamkernel.daemon.config.plan import Plan
from streamkernel.daemon.run_state.component import (
    SOURCE_KEYS,
    Count,
    Counts,
    OpenSource,
    Places,
    Saved,
    Snapshot,
    StateComponent,
    StateSection,
    differences,
    plain,
    positions_of,
    source_settings,
)
from streamkernel.daemon.stream.processor import Processor

if TYPE_CHECKING:
    from streamkernel.daemon.run_state.start import Start

__all__ = ["SourceState"]

_log = logging.getLogger(__name__)


class _SourceSection(StateSection):
    config: dict[str, Any]
    account: Counts
    recent_dead: list[Count]
    positions: Places


class SourceState(StateComponent):
    """Where the main source continues, and what became of its records."""

    name = "source"
    section = _SourceSection

    def snapshot(self, start: Start, plan: Plan, processor: Processor) -> Snapshot:
        return Snapshot(
            {
                "config": source_settings(plan.raw["source"], plan.config.source),
                "account": processor.counts.to_json(),
                "recent_dead": processor.rate.recent,
                "positions": [position.to_json() for position in start.positions.values()],
            }
        )

    def sources(self, start: Start, plan: Plan) -> Iterator[OpenSource]:
        yield OpenSource("source", plan.source, start.positions, lambda: start.counts.consumed)

    def differences(self, saved: Saved, plan: Plan) -> list[str]:
        before, now = saved.header["source"]["config"], source_settings(plan.raw["source"], plan.config.source)
        return list(differences("source", before, now, SOURCE_KEYS))

    def restore(self, saved: Saved, start: Start, plan: Plan) -> None:
        section = saved.header["source"]
        start.counts, start.positions = RecordCounts(**section["account"]), positions_of(section)
        start.recent_dead = list(section["recent_dead"])
        before, now = section["config"].get("inputs"), plan.raw["source"].get("inputs")
        with contextlib.suppress(ValidationError):  # a variable, which is as it is written here
            before, now = (InputsConfig.model_validate(one or {}).model_dump() for one in (before, plain(now)))
        for difference in differences("source.inputs", before or {}, now or {}, InputsConfig.model_fields):
            _log.warning("%s: the model continues with the new inputs", difference)
