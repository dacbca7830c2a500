"""A home whose outputs are tried: a short stream, and a model that starts at once."""

from __future__ import annotations

from typing import Any

from tests.daemon.conftest import Home

RIVER = ["river.preprocessing.StandardScaler", "river.linear_model.LogisticRegression"]
SOURCE = {"kind": "csv", "path": "stream.csv", "target": "y", "target_type": "bool"}


def configured(home: Home, **sections: Any) -> None:
    sections.setdefault("checkpoint", {"directory": "out/state", "every_records": 100})
    home.configure(**{"source": SOURCE, "model": RIVER, **sections})


def predictions(path: str = "out/predictions.jsonl", **more: Any) -> dict[str, Any]:
    return {"kind": "jsonl", "path": path, **more}


def offsets(home: Home, path: str = "out/predictions.jsonl") -> list[int]:
    return [line["position"]["offset"] for line in home.lines(path)]


def offsets_of(home: Home) -> list[int]:
    """Where the records of the stream begin."""
    found, offset = [], 0
    for line in (home.folder / "stream.csv").read_bytes().splitlines(keepends=True):
        found.append(offset)
        offset += len(line)
    return found[1:]


def with_short_stream(home: Home) -> Home:
    """Give a home a short stream and a model that starts at once."""
    text = "".join(f"{number % 7},{number % 3},{'yes' if number % 2 else 'no'}\n" for number in range(400))
    (home.folder / "stream.csv").write_text("a,b,y\n" + text)
    configured(home)
    return home
