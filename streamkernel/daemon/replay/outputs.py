"""The outputs of a replay: predictions after those that are there, and dead letters as somebody mended them."""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, suppress
from itertools import compress
from pathlib import Path
from typing import Any

from streamkernel.connectors.ports import Position, Sink, SinkError
from streamkernel.daemon.assembly.connectors import make_sink
from streamkernel.daemon.config.plan import Plan
from streamkernel.daemon.replay.feed import is_replayed
from streamkernel.daemon.run_state.start import Start
from streamkernel.daemon.stream.sinks import Sinks

__all__ = ["ReplaySinks", "open_outputs"]

_log = logging.getLogger(__name__)


class ReplaySinks(Sinks):
    """Sinks that leave out the dead letters of replayed records, which are still in their file.

    Attributes
    ----------
    mended
        Whether the output for dead letters is the file that is replayed, and was changed since it was written.

    """

    mended = False

    def write(
        self,
        lines: Mapping[str, Sequence[Mapping[str, Any]]],
        origins: Mapping[str, Sequence[Position]] | None = None,
        read_at: float | None = None,
    ) -> None:
        """Hand lines to the sinks; see `Sinks.write`."""
        origins = origins or {}
        places = origins.get("dead_letters", ())
        new = [not is_replayed(place) for place in places]
        super().write(
            {**lines, "dead_letters": list(compress(lines.get("dead_letters", ()), new))},
            {**origins, "dead_letters": list(compress(places, new))},
            read_at,
        )


def open_outputs(plan: Plan, start: Start, letters: Path, stack: ExitStack) -> ReplaySinks:
    """Open the outputs of a configuration where a checkpoint says that they continue.

    The file of the output for dead letters may be the one that is replayed, mended in place: then it is taken as
    it is now.

    Raises
    ------
    SinkError
        Where an output cannot be gone on with.

    """
    made = {key: make_sink(one, key, plan) for key, one in plan.config.outputs.items()}
    sinks = ReplaySinks(made, max_waiting_bytes=plan.config.limits.max_waiting_bytes)
    stack.enter_context(sinks)
    for key, sink in made.items():
        mark = start.mark_of(key, plan.raw.get(key) or {})
        if key == "dead_letters" and mark is not None and _is_mended(plan, sink, mark, letters):
            output = plan.config.dead_letters
            assert output is not None
            appending = output.model_copy(update={"existing": "append"})
            sinks.sinks[key] = sink = make_sink(appending, key, plan)
            sinks.mended, mark = True, None
            _log.info("%s was changed after the daemon wrote it: replay uses it as it is now", letters)
        sink.open(mark)
    return sinks


def _is_mended(plan: Plan, sink: Sink, mark: Any, letters: Path) -> bool:
    """Return whether the output for dead letters is the file to be replayed, and not as the checkpoint knows it."""
    path = getattr(plan.config.dead_letters, "path", None)
    same = False
    with suppress(OSError):
        same = path is not None and os.path.samefile(path, letters)
    if same:
        try:
            sink.find_problem(mark)
        except SinkError:
            return True
    return False
