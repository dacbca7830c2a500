"""The warm start as a component of the state: how much of its source was learned, and whether that was all of it."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

from streamkernel.connectors.ports import Position
from streamkernel.daemon.base.counts import RecordCounts
from streamkernel.daemon.components.late_labels import join_key
from streamkernel.daemon.components.warm_start import refits
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
    positions_of,
    source_settings,
)
from streamkernel.daemon.run_state.learners import direct_stage, make_rate, make_scores
from streamkernel.daemon.stream.dead_letter_rate import DeadLetterRate
from streamkernel.daemon.stream.processor import WARM_START, Processor

if TYPE_CHECKING:
    from streamkernel.daemon.run_state.start import Start

__all__ = ["WarmStart", "WarmStartState"]

_log = logging.getLogger(__name__)


@dataclass
class WarmStart:
    """How far the source is learned that comes before the main one.

    Attributes
    ----------
    counts, recent_dead
        Of its records, apart from those of the main source.
    positions
        Where each of its partitions continues.
    done
        Whether all of it was learned: then the main source is read.
    rate
        The watch over the share of dead letters, while it is learned.

    """

    counts: RecordCounts = field(default_factory=RecordCounts)
    recent_dead: list[int] = field(default_factory=list)
    positions: dict[int, Position] = field(default_factory=dict)
    done: bool = False
    rate: DeadLetterRate | None = None


class _WarmStartSection(StateSection):
    config: dict[str, Any] | None = None
    account: Counts
    recent_dead: list[Count]
    positions: Places
    done: bool


class WarmStartState(StateComponent):
    """The state of a warm start; a run that began without one learns none later."""

    name = "warm_start"
    section = _WarmStartSection

    def snapshot(self, start: Start, plan: Plan, processor: Processor) -> Snapshot | None:  # noqa: ARG002
        warm = start.warm
        if warm is None:
            return None
        return Snapshot(
            {
                "config": _settings(plan),
                "account": warm.counts.to_json(),
                "recent_dead": warm.recent_dead if warm.rate is None else warm.rate.recent,
                "positions": [position.to_json() for position in warm.positions.values()],
                "done": warm.done,
            }
        )

    def sources(self, start: Start, plan: Plan) -> Iterator[OpenSource]:
        warm = start.warm
        source = plan.sources.get("warm_start.source")
        if source is not None and warm is not None and not warm.done:
            make = partial(_make_processor, plan, warm)
            then = "the model is refitted after it" if refits(plan.config, plan.models) else ""
            yield OpenSource(
                "warm_start.source", source, warm.positions, lambda: warm.counts.consumed, first=make, then=then
            )

    def differences(self, saved: Saved, plan: Plan) -> list[str]:
        section = saved.header.get(self.name)
        if section is None or section["done"]:
            return []
        now = _settings(plan)
        if now is None:
            return ["warm_start is half learned in the checkpoint and not set in the configuration"]
        return list(differences("warm_start.source", section.get("config") or {}, now, SOURCE_KEYS))

    def begin(self, start: Start, plan: Plan) -> None:
        if plan.config.warm_start is not None:
            start.warm = WarmStart()

    def restore(self, saved: Saved, start: Start, plan: Plan) -> None:
        section = saved.header.get(self.name)
        if section is not None:
            counts, positions = RecordCounts(**section["account"]), positions_of(section)
            start.warm = WarmStart(counts, list(section["recent_dead"]), positions, section["done"])
        elif plan.config.warm_start is not None:
            _log.warning(
                "warm_start: not learned, because the run began without it: start over with --fresh to learn it"
            )


def _make_processor(plan: Plan, warm: WarmStart, main: Processor) -> Processor:
    """Return the processor of a warm start: the learners of the main one, with counts and scores of their own."""
    scores, warm.rate = make_scores(plan, main.learner.model), make_rate(plan, warm.recent_dead)
    return Processor(
        main.learner,
        scores.quality,
        scores.loss,
        warm.rate,
        warm.counts,
        direct_stage(plan, join_key(plan.config)),
        encoding=getattr(plan.config.sources["warm_start.source"], "encoding", "utf-8"),
        name=main.name,
        challengers=main.challengers,
        others={name: make_scores(plan, one.model) for name, one in main.challengers.learners.items()},
        source=WARM_START,
    )


def _settings(plan: Plan) -> dict[str, Any] | None:
    settings = plan.config.warm_start
    return None if settings is None else source_settings(plan.raw["warm_start"]["source"], settings.source)
