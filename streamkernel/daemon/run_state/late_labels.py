"""Late labels as a component of the state: the key, the positions and counts of the labels, and what waits."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from streamkernel.daemon.base.events import LabelRecord
from streamkernel.daemon.config.plan import Plan
from streamkernel.daemon.labels import snapshot
from streamkernel.daemon.labels.join import LabelJoin
from streamkernel.daemon.labels.merged_sources import MergedSources
from streamkernel.daemon.labels.stage import JoinStage
from streamkernel.daemon.run_state.component import (
    Count,
    OpenSource,
    Places,
    Saved,
    Snapshot,
    StateComponent,
    StateSection,
    differences,
    plain,
    source_differences,
    source_settings,
)
from streamkernel.daemon.run_state.learners import make_rate
from streamkernel.daemon.stream.challengers import Challengers
from streamkernel.daemon.stream.learner import Learner
from streamkernel.daemon.stream.loop import Feed
from streamkernel.daemon.stream.processor import Processor, Stage

if TYPE_CHECKING:
    from streamkernel.daemon.run_state.start import Start

__all__ = ["LateLabelsState"]

_log = logging.getLogger(__name__)


class _LateLabelsSettings(StateSection):
    key: str
    source: dict[str, Any]


class _LateLabelsSection(StateSection):
    config: _LateLabelsSettings
    pending: Count
    positions: Places


class LateLabelsState(StateComponent):
    """The state of late labels; a run in mode predict may continue without those of its checkpoint."""

    name = "labels"
    section = _LateLabelsSection

    def snapshot(self, start: Start, plan: Plan, processor: Processor) -> Snapshot | None:  # noqa: ARG002
        if start.join is None:
            return None
        section, waiting = snapshot.dump(start.join)
        return Snapshot({"config": _settings(plan), **section}, waiting)

    def sources(self, start: Start, plan: Plan) -> Iterator[OpenSource]:
        join = start.join
        if join is not None:
            names = ("label", LabelRecord, "learning-labels")
            source = plan.sources["labels.source"]
            yield OpenSource("labels.source", source, join.positions, lambda: join.counts.taken, *names)

    def describe(self, start: Start) -> str:
        return "" if start.join is None else f"{len(start.join.pending)} records wait for their labels"

    def differences(self, saved: Saved, plan: Plan) -> list[str]:
        return self._differences(saved, plan) if saved.header["run"]["mode"] == "learn" else []

    def begin(self, start: Start, plan: Plan) -> None:
        if (labels := plan.config.labels) is not None:
            target = getattr(labels.source, "target", None) or "target"
            limits = labels.timeout_seconds, labels.max_pending
            start.join = LabelJoin(labels.key, target, *limits, max_bytes=labels.max_pending_bytes)

    def stage(self, start: Start, plan: Plan, learner: Learner, challengers: Challengers) -> Stage | None:
        if (join := start.join) is None:
            return None
        join.learn = learner.learn
        return JoinStage(join, learner, make_rate(plan, join.recent_dead), challengers)

    def feed(self, start: Start, plan: Plan) -> Feed | None:
        labels, join = plan.sources.get("labels.source"), start.join
        return None if labels is None or join is None else MergedSources(plan.source, labels, join.label_next)

    def excluded(self, start: Start) -> Iterator[str]:
        if start.join is not None:
            yield start.join.key

    def exported(self, start: Start, plan: Plan) -> Mapping[str, Any]:
        return {"late": start.join, "labels": plan.sources.get("labels.source")}

    def restore(self, saved: Saved, start: Start, plan: Plan) -> None:
        self.begin(start, plan)
        section = saved.header.get(self.name)
        if section is None:
            return
        if different := self._differences(saved, plan):
            why, pending = "; ".join(different), section["pending"]
            _log.warning("%s: the %d records that wait for labels are given up", why, pending)
            start.whole = False
        elif start.join is not None:
            snapshot.restore(start.join, section, saved.data[self.name])

    def _differences(self, saved: Saved, plan: Plan) -> list[str]:
        section, labels = saved.header.get(self.name), plan.config.labels
        if section is None:
            return []
        if labels is None:
            return ["labels is set in the checkpoint and not in the configuration"]
        before, now = section["config"], _settings(plan) or {}
        return [
            *differences("labels", before, now, ["key"]),
            *source_differences("labels.source", before["source"], now["source"], section["positions"], labels.source),
        ]


def _settings(plan: Plan) -> dict[str, Any] | None:
    labels = plan.config.labels
    if labels is None:
        return None
    written = plan.raw["labels"]
    return {"key": plain(written["key"]), "source": source_settings(written["source"], labels.source)}
