"""The processor of a warm start: records are learned, and no prediction of them is written."""

from __future__ import annotations

from streamkernel.daemon.stream.chunk_result import ChunkResult
from streamkernel.daemon.stream.processor import Processor

__all__ = ["WARM_START", "WarmProcessor"]

WARM_START = "warm_start"
"""The source of its records in the position of a dead letter."""


class WarmProcessor(Processor):
    """A processor that makes no lines of predictions, and whose dead letters say that they are of the warm start."""

    def close(self, done: ChunkResult) -> ChunkResult:
        done = super().close(done)
        done.lines, done.line_origins = [], []
        for letter in done.letters:
            letter["position"]["source"] = WARM_START
        # One topic may hold both, as of labels: the place in one source differs from the same place in another.
        done.letter_origins = [one._replace(stream=f"{WARM_START}:{one.stream}") for one in done.letter_origins]
        return done
