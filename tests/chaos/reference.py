"""Undisturbed runs: the same records from a file, so that nothing of Kafka's has a part in them."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from streamkernel.daemon.monitoring.inspection import describe
from streamkernel.daemon.run_state.models import published_entry
from tests.chaos.account import read_file
from tests.chaos.daemons import Starter
from tests.chaos.stream import rows

WARM = "warm.jsonl"
"""The file of a warm start."""

WARM_START: Mapping[str, Any] = {"warm_start": {"source": {"kind": "jsonl", "path": WARM, "target": "y"}}}
"""The section of the configuration that has it learned first."""


class Undisturbed(NamedTuple):
    """What a run came to that nothing disturbed: the model's digest and, in order, what it said to each record."""

    digest: str
    predictions: list[bytes]


def warm_lines(n_records: int) -> bytes:
    """Return the lines of so many records, other ones than those of a trial, which all can be learned from."""
    values = [row.value for row in islice((row for row in rows(1) if row.predicted), n_records)]
    return b"".join(value + b"\n" for value in values if value is not None)


class References:
    """Runs the daemon over values, each list of them once."""

    def __init__(self, starter: Starter, folder: Path) -> None:
        self._starter = starter
        self._folder = folder
        self._known: dict[str, Undisturbed] = {}

    def run(self, values: Iterable[bytes], model: list[Any], warm: bytes = b"") -> Undisturbed:
        """Run over values that all get a prediction, in this order; before them, learn the lines of a warm start."""
        text = b"".join(value + b"\n" for value in values)
        key = hashlib.sha256(json.dumps(model).encode() + warm + b"\n" + text).hexdigest()
        if key not in self._known:
            self._known[key] = self._run(self._folder / key[:16], text, model, warm)
        return self._known[key]

    def _run(self, folder: Path, text: bytes, model: list[Any], warm: bytes) -> Undisturbed:
        folder.mkdir(parents=True)
        (folder / "records.jsonl").write_bytes(text)
        settings: dict[str, Any] = {
            "source": {"kind": "jsonl", "path": "records.jsonl", "target": "y"},
            "model": model,
            "predictions": {"kind": "jsonl", "path": "predictions.jsonl"},
            "dead_letters": {"kind": "jsonl", "path": "dead.jsonl"},
            "checkpoint": {"directory": "state"},
            "metrics": None,
        }
        if warm:
            (folder / WARM).write_bytes(warm)
            settings |= WARM_START
        (folder / "config.yaml").write_text(yaml.safe_dump(settings, sort_keys=False))
        daemon = self._starter.start(folder, "run", "config.yaml")
        assert daemon.wait() == 0, daemon.log
        header = describe(folder / "state")
        lines = read_file(folder / "predictions.jsonl")
        assert (
            header["source"]["account"]["predicted"]
            == header["source"]["account"]["consumed"]
            == len(lines)
            == text.count(b"\n")
        )
        return Undisturbed(published_entry(header)["state_digest"], [line.text for line in lines])
