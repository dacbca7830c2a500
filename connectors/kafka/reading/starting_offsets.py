"""Finds the offset at which reading each partition of a topic begins: from a checkpoint, or by the option `start`."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Literal

from streamkernel.connectors.kafka.base.topic import KafkaTopic
from streamkernel.connectors.ports import Position, SourceError

__all__ = ["StartingOffsets"]


class StartingOffsets:
    """The offset of each partition to read; found on the thread of the reader.

    Parameters
    ----------
    positions
        Where the checkpoint continues.
    came_later
        Whether all partitions without a position were added to the topic after the very first run.

    Attributes
    ----------
    stream
        The identity of the topic; empty until it is reached.
    chosen
        Where the partitions begin that the checkpoint does not know; for any thread.

    """

    def __init__(
        self,
        partitions: Literal["all"] | Collection[int],
        start: Literal["earliest", "latest"],
        positions: Mapping[int, Position],
        came_later: bool,
    ) -> None:
        self.stream = ""
        self.chosen: Mapping[int, Position] = {}
        self._partitions = partitions
        self._latest = start == "latest" and not positions
        self._positions = positions
        self._came_later = came_later or (bool(positions) and partitions == "all")

    def find(self, topic: KafkaTopic) -> dict[int, int]:
        """Return the offset of each partition to read.

        Raises
        ------
        SourceError
            Where the topic is not the one of the checkpoint, or lacks a partition.

        """
        for position in self._known.values():
            if position.stream != topic.identity:
                raise SourceError(_difference(position.stream, topic.identity))
        there = topic.partitions
        wanted = sorted(there if self._partitions == "all" else set(self._partitions))
        missing = sorted(set(wanted) - there)
        if missing:
            raise SourceError(
                f"the topic has no partition {', '.join(map(str, missing))}, only {min(there)} to {max(there)}: "
                "check partitions"
            )
        self.stream = topic.identity
        new = [one for one in wanted if one not in self._known]
        if self._came_later:
            # Not with the first message that is there: those that retention removed were never read.
            offsets = dict.fromkeys(new, 0)
        else:
            bounds = topic.bounds(new)
            offsets = {one: bounds[one].end if self._latest else bounds[one].first for one in new}
        # They are asked for once, even if the connection is lost now: the end of the topic moves on.
        self._choose(offsets)
        return {one: self._known[one].offset for one in wanted}

    def add(self, partitions: Collection[int]) -> dict[int, int]:
        """Return the offsets of partitions that were added to the topic, if they are to be read."""
        if self._partitions != "all":
            return {}
        self._choose(dict.fromkeys(partitions - self._known.keys(), 0))
        return {one: self._known[one].offset for one in partitions}

    def _choose(self, offsets: Mapping[int, int]) -> None:
        # A new mapping, because another thread may be looking at this one.
        self.chosen = {**self.chosen, **{one: Position(self.stream, one, offsets[one]) for one in sorted(offsets)}}

    @property
    def _known(self) -> dict[int, Position]:
        return {**self.chosen, **self._positions}


def _difference(before: str, now: str) -> str:
    """Say how the topic of a position differs from the one that is there."""
    cluster, _, rest = before.partition("/")
    if cluster != now.partition("/")[0]:
        what = f"the checkpoint was taken from the cluster {cluster}, this is {now.partition('/')[0]}"
    elif (topic := rest.rpartition("/")[0]) != now.partition("/")[2].rpartition("/")[0]:
        what = f"the checkpoint was taken from the topic {topic}"
    else:
        what = "the topic was deleted and created again since the checkpoint"
    return f"{what}: use that one again, or start over with --fresh"
