"""Where the time of a run of the daemon goes: `streamkernel run` in this process, its parts timed by the chunk.

    python -m benchmarks.daemon_parts CONFIG [--max-records N]

A sampling or tracing profiler charges small Python functions for its own work; here a clock is read when a chunk enters
and leaves a part, some thousand times a second, which costs nothing that can be measured. Printed as JSON: seconds of
the whole loop, the records it took, and the seconds each part had to itself.
"""

import argparse
import json
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any
from unittest import mock

from streamkernel import KernelClassifier
from streamkernel.connectors.files.bytes import File
from streamkernel.connectors.files.lines import Lines
from streamkernel.connectors.files.source import LineSource
from streamkernel.daemon.assembly.plan import prepare
from streamkernel.daemon.monitoring.watch import Watch
from streamkernel.daemon.run_state.coordinator import CheckpointCoordinator
from streamkernel.daemon.runtime import run
from streamkernel.daemon.stream.direct import DirectStage
from streamkernel.daemon.stream.in_flight import InFlightMarker
from streamkernel.daemon.stream.learner import Learner
from streamkernel.daemon.stream.loop import Loop
from streamkernel.daemon.stream.processor import Processor
from streamkernel.daemon.stream.quality import ProgressiveLoss, Quality
from streamkernel.daemon.stream.sinks import Sinks

WHOLE = "the rest (the loop itself, pacing)"
PARTS: dict[str, list[tuple[type, str]]] = {
    "read the file": [(File, "read")],
    "split into lines, positions": [(Lines, "take")],
    "decode, make the records": [(LineSource, "poll")],
    "model (`advance`)": [(KernelClassifier, "advance")],
    "quality and progressive loss": [(Quality, "add"), (ProgressiveLoss, "add")],
    "prediction lines, accounting": [
        (DirectStage, "fill"),
        (Learner, "advance"),
        (DirectStage, "settle"),
        (Processor, "close"),
        (Processor, "lines"),
    ],
    "encode and write the outputs": [(Sinks, "write")],
    "checkpoints": [(CheckpointCoordinator, "save_when_due")],
    "write-ahead marker": [(InFlightMarker, "set"), (InFlightMarker, "clear")],
    "metrics, log, status": [(Watch, "chunk"), (Watch, "turn")],
    WHOLE: [(Loop, "run")],
}


class Stopwatch:
    """Seconds each part had to itself, those of the parts inside it taken off.

    Attributes
    ----------
    seconds
        By part.

    """

    def __init__(self) -> None:
        self.seconds: dict[str, float] = defaultdict(float)
        self._inside = [0.0]

    def timed(self, part: str, function: Callable[..., Any]) -> Callable[..., Any]:
        """Wrap a method so that its time counts for a part."""

        def wrapped(*args: Any, **keywords: Any) -> Any:
            self._inside.append(0.0)
            start = time.perf_counter()
            try:
                return function(*args, **keywords)
            finally:
                taken = time.perf_counter() - start
                self.seconds[part] += taken - self._inside.pop()
                self._inside[-1] += taken

        return wrapped

    @contextmanager
    def watching(self, parts: Mapping[str, list[tuple[type, str]]]) -> Iterator[None]:
        """Time the methods of all parts as long as this lasts."""
        with ExitStack() as stack:
            for part, methods in parts.items():
                for kind, name in methods:
                    wrapped = self.timed(part, getattr(kind, name))
                    stack.enter_context(mock.patch.object(kind, name, wrapped))
            yield


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("config", type=Path)
    parser.add_argument("--max-records", type=int, default=None)
    options = parser.parse_args()
    stopwatch = Stopwatch()
    plan = prepare(options.config)
    with stopwatch.watching(PARTS):
        view = run(plan, fresh=True, max_records=options.max_records)
    seconds = stopwatch.seconds
    parts = {part: seconds[part] for part in PARTS}
    json.dump({"records": view.taken, "seconds": sum(parts.values()), "parts": parts}, sys.stdout)


if __name__ == "__main__":
    main()
