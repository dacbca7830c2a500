"""The stage of a model that learns without labels: each record is scored, and learned at once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from streamkernel.connectors.ports import Label, Record
from streamkernel.daemon.base.events import Events
from streamkernel.daemon.stream.chunk_result import Scored
from streamkernel.daemon.stream.direct import DirectStage
from streamkernel.estimators.base import AdvanceResult

__all__ = ["UnlabeledStage"]


class UnlabeledStage(DirectStage):
    """A direct stage in which each usable record is learned; a target that it brings is only written to its line."""

    def events(self, items: Sequence[Record]) -> Events:
        events = super().events(items)
        return replace(events, ys=[True] * len(events.xs))

    def rows(self, record: Record) -> list[tuple[dict[str, Any], Label | None]]:
        return [(record.x, True)]

    def _score(self, records: Sequence[Record], result: AdvanceResult, scored: Scored) -> int:
        scored.targets, scored.predictions, scored.probabilities = [True] * len(records), result.predictions, None
        scored.add_losses(result.losses.tolist(), scored.targets, result.predictions, None)
        return len(records)
