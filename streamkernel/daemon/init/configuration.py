"""The text of a configuration for a file: commented, and ready to run."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from streamkernel.connectors.names import find, hint, nfc
from streamkernel.daemon.base.line_names import line_names
from streamkernel.daemon.config.problems import why_no_text
from streamkernel.daemon.config.schema import LimitsConfig
from streamkernel.daemon.init.columns import SampledColumn, read_columns
from streamkernel.daemon.init.sample import Sample, SampleError, read_sample

__all__ = ["configuration_for"]

_TEMPLATE = """\
# A configuration for {title}, made from its first {n_records:,} records.
# Try it with `streamkernel check`, start it with `streamkernel run`.
source:
  kind: {kind}
  path: {path}
  target: {target}  # {guessed}
{notes}  target_type: {target_type}
{csv}  follow: false  # true: wait for more at the end of the file
{inputs}
# Of the inputs, numbers are scaled, each text is an indicator, and an empty cell is the mean. The columns:
{columns}model:
  - streamkernel.{estimator}: {{seed: 1}}

predictions: {{kind: jsonl, path: {folder}/predictions.jsonl{include}}}
# Records that cannot be used, with the reason: fix them and learn them with `streamkernel replay`.
dead_letters: {{kind: jsonl, path: {folder}/dead-letters.jsonl}}
# A run that was stopped or killed continues from here: each record is learned once.
checkpoint: {{directory: {folder}/state}}
metrics: {{port: 0}}  # a free port, which the log names: a status page and metrics for Prometheus
{limits}"""

_TARGET_NAMES = frozenset({"class", "label", "outcome", "response", "target", "y"})
# Whole numbers with more different values than this are an amount, not labels.
_MOST_LABELS = 20
_MOST_SHOWN = 50
_PLAIN = re.compile(r"[A-Za-z_][\w./-]*\Z", re.ASCII)
_WORDS = frozenset({"null", "true", "false", "yes", "no", "on", "off", "y", "n"})  # to YAML, these are no texts


def configuration_for(path: Path, target: str | None = None, tell: Callable[[str], object] = str) -> str:
    """Return a configuration for a CSV or JSON-lines file, made from its first records.

    Parameters
    ----------
    path
        The file.
    target
        The column to be predicted; None: the one that looks most like it.
    tell
        Called with a sentence about a target that was guessed.

    Raises
    ------
    SampleError
        Where the file cannot be read, or lacks what a configuration needs.

    """
    if str(path) == "-":
        raise SampleError("init needs a file for the configuration to name: standard input has no name")
    sample = read_sample(path)
    name, guessed = _target(sample, target)
    columns, found = read_columns(sample, name)
    if found.holds in ("nothing", "nested values"):
        has = "is empty" if found.holds == "nothing" else "holds nested values"
        raise SampleError(f"{path}: the column {name!r} {has} in its first records: name another one by --target")
    for text in (str(path), name, *sample.doubled):
        if "${" in text:
            raise SampleError(f"{text!r}: ${{ begins a variable in a configuration: rename it")
        if (why := why_no_text(text)) is not None:
            raise SampleError(f"{text!r}: {why}")
    if guessed:
        tell(f"guessed the target {name!r}: to predict another column, add --target NAME")
    kind = _kind(found)
    label = "a number: str, int or bool, with a classifier, if these are labels"
    csv = [
        f"delimiter: {json.dumps(sample.delimiter)}",
        f"encoding: {sample.encoding}",
        f"multiline: {json.dumps(sample.multiline)}  # whether a quoted field may hold line ends",
    ]
    folder = f"out/{re.sub(r'[^A-Za-z0-9_-]+', '-', path.name.partition('.')[0]).strip('-') or 'stream'}"
    passing = [one.name for one in columns if one.finds_a_record and one.name not in line_names() and one.name]
    longest = max((max(column.longest, len(column.name)) for column in columns), default=0)
    why = f"the longest text, in characters: there are some of {longest:,}"
    limits = f"\nlimits: {{max_string: {2 * longest}}}  # {why}\n"
    return _TEMPLATE.format(
        title=_shown(path.name),
        n_records=len(sample.records),
        kind=sample.kind,
        path=_text(str(path)),
        target=_text(name),
        guessed="guessed: to predict another column, run init again with --target NAME" if guessed else "is predicted",
        notes=_lines("  # ", _notes(found)),
        target_type=f"{kind}  # {label if kind == 'float' else 'a label: float, with a regressor, if it is an amount'}",
        csv=_lines("  ", csv) if sample.kind == "csv" else "",
        inputs=_lines("  ", _inputs(sample, [one for one in columns if "${" not in one.name], found)),
        columns=_lines("#   ", _described(columns)),
        estimator="AdaptiveKernelRegressor" if kind == "float" else "AdaptiveKernelClassifier",
        folder=folder,
        include=f", include: {_flow(passing)}" if passing else "",
        limits=limits if longest > LimitsConfig().max_string else "",
    )


def _target(sample: Sample, name: str | None) -> tuple[str, bool]:
    """Return the name of the target, and whether it was guessed."""
    if not sample.columns:
        raise SampleError(f"{sample.path}: its first records are empty: use a file with values")
    if name is None:
        named = [one for one in sample.columns if one.strip().lower() in _TARGET_NAMES]
        return (named or list(sample.columns))[-1], True
    name = nfc(name)
    if name in sample.columns or any(find(record, name) is not None for record in sample.records):
        return name, False
    listed = ", ".join(map(repr, sample.columns[:20]))
    raise SampleError(f"--target: {sample.path} has no column {name!r}, it has {listed}{hint(name, sample.columns)}")


def _kind(target: SampledColumn) -> str:
    if all(isinstance(value, bool) for value in target.values):
        return "bool"
    if target.holds == "texts":
        return "str"
    whole = all(number.is_integer() for value in target.values if (number := target.number(value)) is not None)
    return "int" if whole and target.n_different <= _MOST_LABELS else "float"


def _notes(target: SampledColumn) -> Iterator[str]:
    if target.note and target.holds == "numbers":
        yield f"The target: {target.note}."
    if target.unit:
        yield f"The target holds {_with_unit(target)} to predict an amount."


def _inputs(sample: Sample, columns: Sequence[SampledColumn], target: SampledColumn) -> Iterator[str]:
    """Yield the section that says how columns are read, if there is something to say."""
    excluded = [column.name for column in columns if column.identifies]
    if excluded and len(excluded) == len(columns):
        yield "# Each column seems to name a record rather than describe it. There is no other to learn from."
        excluded = []
    for column in columns:
        if column.unit:
            becomes = "is left out" if column.name in excluded else "is a text, each value a category"
            yield f"# The column {_shown(column.name)} {becomes}: it holds {_with_unit(column)} to have numbers."
    types = [(column, said) for column in columns if not column.identifies and (said := _type(column, target))]
    nested = any(isinstance(value, dict | list) for record in sample.records for value in record.values())
    marks = _marks(target) if target.form != (".", "") else {}
    if excluded or types or nested or sample.doubled or marks:
        yield "# How columns are read; all but those that are excluded are inputs."
        yield "inputs:"
    if any(column.name in excluded for column in columns if not column.unit):
        yield "  # These name a record rather than describe it; without them learning is faster, and mostly better."
    if sample.doubled:
        yield "  # Several columns have one of these names: rename them to have them as inputs."
    if excluded or sample.doubled:
        yield f"  exclude: {_flow([*excluded, *sample.doubled])}"
    if nested:
        yield "  nested: flatten  # each value in an object or a list is an input; ignore: none of them is"
    yield from (f"  {key}: {json.dumps(mark)}  # of the target" for key, mark in marks.items())
    if types:
        yield "  types:"
    for column, settings in types:
        if column.note:
            yield f"    # {column.note}"
        shown = settings["type"] if settings.keys() == {"type"} else _flow(settings)
        yield f"    {_text(column.name)}: {shown}  # {column.why}"


def _type(column: SampledColumn, target: SampledColumn) -> dict[str, Any]:
    """Return the settings of a column under `inputs.types`; empty if the source needs none."""
    settings: dict[str, Any] = {} if column.type is None else {"type": column.type}
    if column.format not in (None, "iso"):
        settings["format"] = column.format
    if column.type == "number" and (column.form if column.form != (".", "") else target.form) != (".", ""):
        settings |= _marks(column)
    return settings | ({"na": list(column.na)} if column.na and column.holds != "nothing" else {})


def _marks(column: SampledColumn) -> dict[str, str]:
    decimal, thousands = column.form
    return {"decimal": decimal, **({"thousands": thousands} if thousands else {})}


def _with_unit(column: SampledColumn) -> str:
    return f'numbers with "{column.unit}", which no setting reads: take that out of the file'


def _described(columns: Sequence[SampledColumn]) -> Iterator[str]:
    for column in columns[:_MOST_SHOWN]:
        different = "" if column.holds == "nothing" else f", {column.n_different:,} different"
        odd = f"; {_shown(column.odd)} is none" if column.odd else ""
        yield f"{_shown(column.name)}: {column.holds}{different}{odd}"
    if len(columns) > _MOST_SHOWN:
        yield f"and {len(columns) - _MOST_SHOWN:,} more"


def _lines(indent: str, lines: Iterator[str] | Sequence[str]) -> str:
    return "".join(f"{indent}{line}\n" for line in lines)


def _flow(value: Any) -> str:
    """Return a value as YAML in one line."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key}: {_flow(one)}" for key, one in value.items()) + "}"
    return f"[{', '.join(map(_flow, value))}]" if isinstance(value, list) else _text(value)


def _text(text: str) -> str:
    return text if _PLAIN.match(text) and text.lower() not in _WORDS else json.dumps(text)


def _shown(name: str) -> str:
    """Return a name in one line of a comment."""
    return json.dumps(name[:80], ensure_ascii=False)[1:-1] if name.isprintable() else ascii(name[:80])
