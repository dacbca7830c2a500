"""What late labels cost: records per second, and the time and size of a checkpoint with records that wait.

    python -m benchmarks.labels [--pending N] [--records N] [--out DIR]

JSON lines of 20 numbers and a key. Each label comes `pending` records after its record, so that so many always wait.
Times are of the processor, on one core, unless they are called elapsed.
"""

import json
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from benchmarks.command import asked
from benchmarks.processes import resident
from benchmarks.report import publish, table
from streamkernel.daemon.assembly.plan import prepare
from streamkernel.daemon.assembly.processor import feed_of, make_processor
from streamkernel.daemon.checkpoints.payload import dump_model
from streamkernel.daemon.checkpoints.store import CheckpointStore
from streamkernel.daemon.labels.join import LabelJoin
from streamkernel.daemon.labels.snapshot import dump, restore
from streamkernel.daemon.labels.stage import JoinStage
from streamkernel.daemon.run_state import resume
from streamkernel.daemon.stream.loop import Feed, rare_collections
from streamkernel.daemon.stream.processor import Processor

INPUTS = 20
CHUNK = 512
MODEL = {"streamkernel.KernelClassifier": {"seed": 1, "max_features": 512}}


def write_stream(folder: Path, records: int, pending: int) -> None:
    """Records with their labels, records without, and the labels of these."""
    rng = np.random.default_rng(0)
    with (
        (folder / "labeled.jsonl").open("w") as labeled,
        (folder / "records.jsonl").open("w") as bare,
        (folder / "labels.jsonl").open("w") as labels,
    ):
        labels.write("\n" * pending)
        for number in range(records):
            row = rng.normal(size=INPUTS)
            x = {f"field_{i}": value for i, value in enumerate(row.tolist())}
            y = "yes" if float(row[:4] @ row[:4]) < 3.4 else "no"
            key = f"transaction-{number:08d}"
            labeled.write(json.dumps({**x, "label": y}) + "\n")
            bare.write(json.dumps({"id": key, **x}) + "\n")
            labels.write(json.dumps({"id": key, "label": y}) + "\n")


def started(folder: Path, late: bool, pending: int) -> tuple[Processor, Feed]:
    """The daemon without its outputs."""
    path = folder / ("records.jsonl" if late else "labeled.jsonl")
    source = {"kind": "jsonl", "path": str(path), "target": None if late else "label"}
    settings: dict[str, Any] = {"source": source, "model": [MODEL], "metrics": None}
    if late:
        labels = {"kind": "jsonl", "path": str(folder / "labels.jsonl"), "target": "label"}
        settings["labels"] = {"source": labels, "key": "id", "max_pending": pending + CHUNK}
    config = folder / "config.yaml"
    config.write_text(yaml.safe_dump(settings))
    plan = prepare(config)
    for opened in plan.sources.values():
        opened.open()
    start = resume.begin(plan)
    return make_processor(plan, start), feed_of(plan, start)


def best(call: Callable[[], object], clock: Callable[[], float] = time.process_time, times: int = 5) -> float:
    """The shortest time a call takes, in milliseconds."""
    took = []
    for _ in range(times):
        before = clock()
        call()
        took.append(clock() - before)
    return 1e3 * min(took)


def advance(processor: Processor, feed: Feed, records: int) -> None:
    """Take records until there were so many."""
    while processor.counts.consumed < records:
        list(processor.process(feed.poll(CHUNK, 0.0)))


def advanced(folder: Path, late: bool, records: int, pending: int) -> tuple[list[str], Processor]:
    """A row of the first table, and the daemon as it is then."""
    processor, feed = started(folder, late, pending)
    advance(processor, feed, 1)  # loads what is compiled
    before = resident()
    advance(processor, feed, pending)
    grown, taken = resident() - before, processor.counts.consumed
    milliseconds = best(lambda: advance(processor, feed, records), times=1)
    waiting = processor.stage.to_json().get("pending", 0)
    rate = 1e3 * (processor.counts.consumed - taken) / milliseconds
    return ["late" if late else "with the record", f"{waiting:,}", f"{rate:,.0f}", f"{grown:.0f}"], processor


def checkpointed(folder: Path, processor: Processor) -> list[str]:
    """A row of the second table."""
    payload, stage = dump_model(processor.learner.model), processor.stage
    waiting, collect, read = 0, 0.0, 0.0
    if isinstance(stage, JoinStage):
        late = stage.join
        waiting = len(late.pending)
        header, blob = dump(late)
        payload += blob
        collect = best(lambda: dump(late))
        read = best(lambda: restore(LabelJoin(late.key, late.target, late.timeout, late.limit), header, blob), times=1)
    store = CheckpointStore(folder / f"state-{waiting}")
    store.lock()
    written = [best(lambda: store.write({}, payload), clock) for clock in (time.process_time, time.perf_counter)]
    store.close()
    return [f"{waiting:,}", f"{len(payload) / 1e6:.2f}", *(f"{one:.1f}" for one in (collect, *written, read))]


def measure(folder: Path, records: int, pending: int) -> tuple[list[list[str]], list[list[str]]]:
    """Rows of the two tables."""
    write_stream(folder, records + pending, pending)
    speeds, checkpoints = [], []
    for late in (False, True):
        row, processor = advanced(folder, late, records, pending)
        speeds.append(row)
        checkpoints.append(checkpointed(folder, processor))
    return speeds, checkpoints


def main() -> None:
    options = asked(__doc__, records=200_000, pending=100_000)
    with tempfile.TemporaryDirectory() as folder, rare_collections():
        speeds, checkpoints = measure(Path(folder), options.records, options.pending)
    publish(
        options,
        "labels",
        "Late labels",
        f"JSON lines of {INPUTS} numbers and a key, `KernelClassifier` of 512 features, one core. A record and its "
        "label count as one; memory is what the process grew by while the first records came to wait.",
        table(["labels come", "records that wait", "records/s", "memory, MB"], speeds),
        "A checkpoint with so many records that wait:",
        table(
            ["records", "size, MB", "to collect, ms", "to write, ms", "to write, ms elapsed", "to read, ms"],
            checkpoints,
        ),
    )


if __name__ == "__main__":
    main()
