"""Lines for a topic that holds lines of runs nothing is known of: refused where they are for the same records."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Literal

from connectors.kafka.writing.backlog import Backlog
from connectors.kafka.writing.earlier import Answer, Earlier
from connectors.ports import Position, SinkError

__all__ = ["Appending", "Existing"]

_log = logging.getLogger(__name__)

Existing = Literal["refuse", "append"]

# The beginning of a file has mostly fewer lines, and what is not told by then is not waited for.
_MOST_LOOKED_AT, _HELD_SECONDS = 512, 1.0


class Appending:
    """Decides whether a line may be written behind those of unknown runs.

    Parameters
    ----------
    existing
        What to do where lines for records of the same partition of the source stand there.
    place
        What a sentence about it begins with.
    clock
        Gives seconds, and never goes back.

    """

    def __init__(self, existing: Existing, place: str, clock: Callable[[], float]) -> None:
        self._existing = existing
        self._place = place
        self._clock = clock
        self._held_since: float | None = None
        self.found({})

    def found(self, counts: dict[tuple[str, int], int]) -> None:
        """Take what a session found in the topic; what is decided is removed from it."""
        self._earlier = Earlier(counts)

    def admits(self, backlog: Backlog, hurried: bool) -> bool:
        """Say whether the first line that waits may be sent; False: more must come to tell.

        Parameters
        ----------
        backlog
            What waits.
        hurried
            Whether nothing more comes for now.

        Raises
        ------
        SinkError
            Where lines for such records stand there, and may not be appended to.

        """
        position = backlog.queue[0].position

        def behind() -> list[Position]:
            return backlog.behind(_MOST_LOOKED_AT)

        final = hurried or len(backlog.queue) > _MOST_LOOKED_AT or self._held_for_long()
        answer = self._earlier.look(position, behind, final)
        if answer is Answer.UNKNOWN:
            self._held_since = self._clock() if self._held_since is None else self._held_since
            return False
        self._held_since = None
        if answer is Answer.NEW:
            return True
        there = (
            f"{self._earlier.count(position, behind):,} of the last lines there are for records of the same "
            f"source, partition {position.partition}, and no checkpoint says which"
        )
        if self._existing == "refuse":
            raise SinkError(
                f"{there}: put the checkpoint directory back that they belong to, name another topic, or set "
                "existing: append for this output, which writes the lines of all records once more"
            )
        _log.warning("%s: %s: they stand there twice from now on (existing: append)", self._place, there)
        self._earlier.accept(position, behind)
        return True

    def _held_for_long(self) -> bool:
        return self._held_since is not None and self._clock() - self._held_since > _HELD_SECONDS
