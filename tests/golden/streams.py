"""Digests of 20 streams, to compare before and after a change: `python -m tests.golden.streams FILE [BEFORE]`.

Each stream is a run of the daemon with two stops, so that checkpoints are read again. The digests are those of the
output files and of the models' states. They hold on one machine: elsewhere predictions are equal to rounding only.
"""

from __future__ import annotations

import hashlib
import json
import sys
import tempfile
from pathlib import Path
from typing import Any

from streamkernel.daemon.run_state.models import published_entry
from tests.kills.runs import MODELS, PIECE, Features, Run

STREAMS = {
    **{name: Features(name) for name in MODELS if name != "predict"},
    "followed": Features("growing", source="followed"),
    "several files": Features("adaptive", source="several", output="csv"),
    "watched": Features("growing", source="watched", output="jsonl.gz"),
    "late labels, JSON": Features("adaptive", source="late labels as jsonl"),
    "late labels, CSV, warm": Features("growing", source="late labels as csv", warm=True, output="csv"),
    "warm start": Features("adaptive", warm=True, include=True),
    "warm start, refitted": Features("refitted", warm=True, output="jsonl.zst"),
    "Parquet": Features("growing", output="parquet", include=True),
    "in time, without dead letters": Features("River's", in_time=True, dead="none"),
    "predict": Features("predict"),
}


def digests(stream: str, folder: Path) -> dict[str, Any]:
    """Run one stream and return the digests of its outputs and of its models' states."""
    features = STREAMS[stream]
    trained = None
    if features.model == "predict":
        before = Run(folder / "trained", Features("growing"))
        before.finish()
        trained = before.home.folder / "out/state"
    run = Run(folder / "run", features, trained)
    run.takes(PIECE + 20)
    run.arrives()
    run.takes(PIECE)
    run.finish()
    header = run.home.header()
    states = {"": published_entry(header)}
    for name, learner in header["models"]["learners"].items():
        if name:
            states[name] = {key: value for key, value in learner.items() if key != "steps"}
    found: dict[str, Any] = {
        f"state {one}": about and about.get("state_digest", about) for one, about in states.items()
    }
    for path in sorted(run.home.folder.glob("out/[!s]*")):
        parts = sorted(path.glob("[!.]*")) if path.is_dir() else [path]
        found[path.name] = hashlib.sha256(b"".join(part.read_bytes() for part in parts)).hexdigest()
    return found


def main(file: str, before: str = "") -> None:
    """Write the digests of all streams, and exit with 1 where they differ from those of an earlier file."""
    found = {}
    for name in STREAMS:
        with tempfile.TemporaryDirectory() as folder:
            found[name] = digests(name, Path(folder))
    Path(file).write_text(json.dumps(found, indent=1) + "\n")
    if before:
        earlier = json.loads(Path(before).read_text())
        changed = [name for name in STREAMS if found[name] != earlier[name]]
        print(f"{len(STREAMS) - len(changed)} of {len(STREAMS)} streams are the same", *changed, sep="\n  ")
        sys.exit(bool(changed))


if __name__ == "__main__":
    main(*sys.argv[1:])
