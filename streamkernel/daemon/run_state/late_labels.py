"""Late labels as a component of the state: the key, the positions and counts of the labels, and what waits."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from streamkernel.daemon.base.events import LabelRecord
from streamkernel.daemon.config.plan import Plan
from streamkernel.daemon.labels import snapshot
from streamkernel.daemon.run_state.component import (
    SOURCE_KEYS,
    Count,
    OpenSource,
    Saved,
    Snapshot,
    StateComponent,
    StateSection,
    differences,
    plain,
    source_settings,
)
from streamkernel.daemon.stream.processor import Processor

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
        if plan.labels is not None and join is not None:
            names = ("label", LabelRecord, "learning-labels")
            yield OpenSource("labels.source", plan.labels, join.positions, lambda: join.counts.taken, *names)

    def describe(self, start: Start) -> str:
        return "" if start.join is None else f"{len(start.join.pending)} records wait for their labels"

    def differences(self, saved: Saved, plan: Plan) -> list[str]:
        return self._differences(saved, plan) if plan.config.mode == "learn" else []

    def restore(self, saved: Saved, start: Start, plan: Plan) -> None:
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
        section, now = saved.header.get(self.name), _settings(plan)
        if section is None:
            return []
        if now is None:
            return ["labels is set in the checkpoint and not in the configuration"]
        before = section["config"]
        return [
            *differences("labels", before, now, ["key"]),
            *differences("labels.source", before["source"], now["source"], SOURCE_KEYS),
        ]


def _settings(plan: Plan) -> dict[str, Any] | None:
    labels = plan.config.labels
    if labels is None:
        return None
    written = plan.raw["labels"]
    return {"key": plain(written["key"]), "source": source_settings(written["source"], labels.source)}
