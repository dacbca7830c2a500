"""What a checkpoint holds, without loading its model: as a mapping, and as the lines that `inspect` prints."""

from __future__ import annotations

import hashlib
import textwrap
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import yaml

from streamkernel.daemon.base.errors import CheckpointError
from streamkernel.daemon.checkpoints.file import Checkpoint, read
from streamkernel.daemon.checkpoints.reader import is_gone, until_listed
from streamkernel.daemon.checkpoints.store import checkpoint_files
from streamkernel.daemon.components.group_mode import partition_directories
from streamkernel.daemon.monitoring.visible import visible
from streamkernel.daemon.run_state.header import check_header
from streamkernel.daemon.run_state.models import published_entry

__all__ = ["describe", "description_lines"]

# Enough to tell two models apart, and fit for a narrow terminal.
_DIGEST_SHOWN = 12
_MOST_SHARES = 3
_MOST_POSITIONS = 4
_COUNTS = ("n_features", "n_blocks", "n_refits")


def describe(path: Path) -> dict[str, Any]:
    """Describe a checkpoint file, or the newest valid one of a directory, or of each partition's in group mode.

    Nothing is written, and no model loaded.

    Raises
    ------
    CheckpointError
        Where there is none, or none is valid.

    """
    if not path.is_dir():
        return _about(path, read(path))
    return until_listed(lambda: _describe_directory(path), path)


def _describe_directory(path: Path) -> dict[str, Any]:
    files = checkpoint_files(path)
    begun = {one: inner for one, inner in partition_directories(path).items() if checkpoint_files(inner)}
    if begun and not files:
        return {"directory": str(path), "partitions": {str(one): describe(inner) for one, inner in begun.items()}}
    if not files:
        raise CheckpointError(f"{path}: holds no checkpoint")
    invalid: list[str] = []
    for file in reversed(files):
        try:
            found = _about(file, read(file))
        except CheckpointError as error:
            if is_gone(error):
                raise
            invalid.append(str(error))
            continue
        return {**found, "directory": [other.name for other in files], "invalid": invalid}
    raise CheckpointError("; ".join(invalid))


def _about(path: Path, checkpoint: Checkpoint) -> dict[str, Any]:
    try:
        check_header(checkpoint.header)
    except CheckpointError as error:
        raise CheckpointError(f"{path}: {error}") from None
    return {
        "file": str(path),
        "number": checkpoint.number,
        **checkpoint.header,
        "payload_bytes": len(checkpoint.payload),
        "payload_sha256": hashlib.sha256(checkpoint.payload).hexdigest(),
    }


def description_lines(described: Mapping[str, Any], width: int, every: bool = False) -> list[str]:
    """Return the description as lines in which no word is cut.

    Parameters
    ----------
    described
        What `describe` gives.
    width
        Of the terminal.
    every
        Whether the whole header follows the lines that matter, as YAML.

    """
    if "partitions" in described:
        return list(_partition_lines(described["partitions"]))
    lines = _aligned(_that_matter(described), width)
    # ASCII: what a record brought must not steer the terminal.
    return [*lines, "", *yaml.safe_dump(dict(described), sort_keys=False).splitlines()] if every else lines


def _that_matter(described: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    run, source, models = described["run"], described["source"], described["models"]
    model, older = published_entry(described), len(described.get("directory", ())) - 1
    yield "checkpoint", f"{described['file']}{f', the newest of {older + 1:,}' if older > 0 else ''}"
    for problem in described.get("invalid", ()):
        yield "invalid", problem
    yield "written", f"{_time(run['written'])}, {described['payload_bytes']:,} bytes"
    yield "mode", run["mode"]
    yield "records", _counts(source["account"])
    if "labels" in described:
        yield "labels", f"{described['labels']['pending']:,} records wait for theirs"
    yield "source", ", ".join(f"{key} {source['config'][key]}" for key in ("kind", "target") if key in source["config"])
    yield "continues at", _positions(source["positions"])
    yield "outputs", "; ".join(_output(key, one) for key, one in described["outputs"].items())
    if models["published"]:
        yield "models", ", ".join(f"{name} ({_state(models, name)})" for name in models["learners"])
    counts = [f"{_shown(model[name])} {name[2:]}" for name in _COUNTS if name in model]
    yield "model", ", ".join([str(model.get("class", "")).rpartition(".")[2], *counts])
    yield "experts", _largest(model.get("expert_weights", {}))
    yield "inputs", _largest(model.get("input_importance", {}))
    yield "state digest", model.get("state_digest", "")
    yield "written by", ", ".join(f"{name} {one}" for name, one in run["versions"].items())


def _output(key: str, output: Mapping[str, Any]) -> str:
    return " ".join([key, *(str(output[name]) for name in ("kind", "path", "topic") if name in output)])


def _state(models: Mapping[str, Any], name: str) -> str:
    if name == models["published"]:
        return "published"
    return "disabled" if models["learners"][name].get("disabled") else "challenger"


def _counts(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{name} {count:,}" for name, count in counts.items())


def _positions(positions: Iterable[Any]) -> str:
    places = sorted((partition, offset) for _, partition, offset, *_ in positions)
    if len(places) == 1 and not places[0][0]:
        return f"offset {places[0][1]:,}"
    shown = [f"{offset:,} of partition {partition}" for partition, offset in places[:_MOST_POSITIONS]]
    more = len(places) - len(shown)
    return ", ".join([*shown, *([f"and {more:,} more partitions"] if more else [])])


def _largest(shares: Mapping[str, float]) -> str:
    """Return the largest shares, and how many more there are."""
    ordered = sorted(shares.items(), key=lambda one: -one[1])
    more = len(ordered) - _MOST_SHARES
    shown = [f"{name}: {_share(share)}" for name, share in ordered[:_MOST_SHARES]]
    return "; ".join([*shown, *([f"{more:,} more"] if more > 0 else [])])


def _aligned(rows: Iterable[tuple[str, str]], width: int) -> list[str]:
    """Return a line for each row that has a text, or several where it is too long: the names are a column."""
    texts = [(visible(name), visible(str(text))) for name, text in rows if text != ""]
    wide = max((len(name) for name, _ in texts), default=0)
    wrap = textwrap.TextWrapper(width, break_long_words=False, break_on_hyphens=False)
    lines = []
    for name, text in texts:
        wrap.initial_indent, wrap.subsequent_indent = f"{name:{wide}}  ", " " * (wide + 2)
        if len(wrap.initial_indent) + max(map(len, text.split()), default=0) > width:  # a long word begins a line
            lines.append(name)
            wrap.initial_indent = wrap.subsequent_indent = "  "
        lines += wrap.wrap(text)
    return lines


def _share(value: Any) -> str:
    return f"{value:.1%}" if isinstance(value, float) else _shown(value)


def _shown(value: Any) -> str:
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)


def _time(written: float) -> str:
    return f"{datetime.fromtimestamp(float(written), UTC):%Y-%m-%d %H:%M:%S} UTC"


def _partition_lines(partitions: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    rows = [("partition", "written", "records", "continues at", "state digest")]
    for partition, about in partitions.items():
        source = about["source"]
        offsets = " ".join(f"{offset:,}" for _, _, offset, *_ in source["positions"])
        digest = str(published_entry(about).get("state_digest", ""))[:_DIGEST_SHOWN]
        written = _time(about["run"]["written"])
        rows.append((partition, written, f"{source['account']['consumed']:,}", offsets, digest))
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        yield visible("  ".join(f"{cell:{wide}}" for cell, wide in zip(row, widths, strict=True)).rstrip())
