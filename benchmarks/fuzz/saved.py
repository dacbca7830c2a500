"""Checkpoints to alter: one of each kind of model, and how a file is put together again with a sum that is right."""

import hashlib
import json
import random
import shutil
import struct
from pathlib import Path
from typing import Any

from benchmarks.fuzz.target import MODELS, configured, ran, takes_numbers

_START = struct.Struct("<8sII")
_SUM = 32
_LENGTH = struct.Struct("<Q")


class Saved:
    """The folder of a daemon that ended well.

    Parameters
    ----------
    folder
        Where to make it.
    model
        Of `MODELS`.
    late
        Whether labels come late.

    """

    def __init__(self, folder: Path, model: str, late: bool = False) -> None:
        self.folder = folder
        self.model = MODELS[model]
        self.numbers = takes_numbers(model)
        self.late = late
        folder.mkdir(parents=True)
        draw = random.Random(1)
        rows = [{"id": f"k{n}", "a": draw.gauss(0, 1), "b": draw.gauss(0, 1)} for n in range(120)]
        truths = [draw.gauss(5, 2) if self.numbers else draw.choice("pq") for _ in rows]
        if not late:
            rows = [{"a": row["a"], "b": row["b"], "y": y} for row, y in zip(rows, truths, strict=True)]
        self._write("records.jsonl", rows)
        self._write("labels.jsonl", [{"id": f"k{n}", "y": y} for n, y in enumerate(truths) if n % 3])
        failed = ran(self.configured(folder))
        if failed is not None:
            raise RuntimeError(failed)
        newest = max((folder / "state").glob("*.skc"))
        self.name = newest.name
        self.head, self.payload = parted(newest.read_bytes())
        self.whole = newest.read_bytes()

    def configured(self, folder: Path) -> Path:
        """The configuration, with its outputs in a folder."""
        source = {"kind": "jsonl", "path": str(self.folder / "records.jsonl"), "target": "y"}
        source["target_type"] = "float" if self.numbers else "str"
        sections: dict[str, Any] = {"source": source, "model": self.model}
        if self.late:
            labels = {**source, "path": str(self.folder / "labels.jsonl")}
            sections["labels"] = {"source": labels, "key": "id"}
        return configured(folder / "config.yaml", **sections)

    def restarted(self, folder: Path, data: bytes) -> str | None:
        """Start a daemon whose only checkpoint is this."""
        shutil.rmtree(folder, ignore_errors=True)
        (folder / "state").mkdir(parents=True, mode=0o700)
        for name in ("predictions.jsonl", "dead.jsonl"):
            shutil.copy(self.folder / name, folder / name)
        (folder / "state" / self.name).write_bytes(data)
        return ran(self.configured(folder))

    def _write(self, name: str, rows: list[dict[str, Any]]) -> None:
        (self.folder / name).write_text("".join(json.dumps(row) + "\n" for row in rows))


def parted(data: bytes) -> tuple[dict[str, Any], bytes]:
    """The head and the payload of a checkpoint."""
    _, _, length = _START.unpack_from(data)
    end = _START.size + length
    head: dict[str, Any] = json.loads(data[_START.size : end])
    return head, data[end : len(data) - _SUM - _LENGTH.size]


def joined(data: bytes, head: bytes, payload: bytes) -> bytes:
    """A checkpoint with another head and payload; its magic and version are those of `data`."""
    magic, version, _ = _START.unpack_from(data)
    body = _START.pack(magic, version, len(head)) + head + payload
    return summed(body)


def summed(body: bytes) -> bytes:
    """A body with its length and its SHA-256 behind it, as a checkpoint ends."""
    body += _LENGTH.pack(len(body))
    return body + hashlib.sha256(body).digest()
