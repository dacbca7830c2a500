"""Finds the offset at which each partition of a topic is read on: from a checkpoint, or by the option `start`."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Literal

from streamkernel.connectors.kafka.consumer.topic import KafkaTopic
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
        self.chosen: Mapping[int, Position] = {}
        self._partitions = partitions
        self._latest = start == "latest" and not positions
        self._positions = positions
        self._came_later = came_later or (bool(positions) and partitions == "all")
        self._stream = ""

    def find(self, topic: KafkaTopic) -> dict[int, int]:
        """Return the offset of each partition that is to be read.

        Raises `SourceError` where the topic is another one than that of the checkpoint, or lacks a partition.
        """
        known = self._known()
        for position in known.values():
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
        self._stream = topic.identity
        # A connection may be lost when this is known, and it must not be asked again: the end of the topic moves on.
        return self._choose(self._first(topic, [one for one in wanted if one not in known]), wanted)

    def add(self, partitions: Collection[int]) -> dict[int, int]:
        """Return the offsets of partitions that were added to the topic, where they are to be read."""
        if self._partitions != "all":
            return {}
        return self._choose(dict.fromkeys(partitions - self._known().keys(), 0), partitions)

    def _first(self, topic: KafkaTopic, new: Sequence[int]) -> dict[int, int]:
        if self._came_later:
            # Not with what is there of it: what is not there any more was never read.
            return dict.fromkeys(new, 0)
        bounds = topic.bounds(new)
        return {one: bounds[one].end if self._latest else bounds[one].first for one in new}

    def _choose(self, offsets: Mapping[int, int], partitions: Collection[int]) -> dict[int, int]:
        # Another mapping, because another thread may be looking at this one.
        self.chosen = {**self.chosen, **{one: Position(self._stream, one, offsets[one]) for one in sorted(offsets)}}
        known = self._known()
        return {partition: known[partition].offset for partition in partitions}

    def _known(self) -> dict[int, Position]:
        return {**self.chosen, **self._positions}


def _difference(before: str, now: str) -> str:
    """Say how the topic of a position differs from the one that is there."""
    cluster, _, rest = before.partition("/")
    topic, _, _ = rest.rpartition("/")
    if cluster != now.partition("/")[0]:
        what = f"the checkpoint was taken from the cluster {cluster}, this is {now.partition('/')[0]}"
    elif topic != now.partition("/")[2].rpartition("/")[0]:
        what = f"the checkpoint was taken from the topic {topic}"
    else:
        what = "the topic was deleted and created again since the checkpoint"
    return f"{what}: use that one again, or start over with --fresh"
