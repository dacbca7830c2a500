"""The text of a configuration for a file: commented, and to be run as it is."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from streamkernel.daemon.base.line_names import line_names
from streamkernel.daemon.config.problems import why_no_text
from streamkernel.daemon.config.schema import LimitsConfig
from streamkernel.daemon.init.columns import SampledColumn, Target, describe_columns, find_target, sample_marks
from streamkernel.daemon.init.reading import Reading
from streamkernel.daemon.init.sample import Sample, SampleError, read_sample

__all__ = ["configuration_for"]

_PLAIN = re.compile(r"[A-Za-z_][\w./-]*\Z", re.ASCII)
_WORDS = frozenset({"null", "true", "false", "yes", "no", "on", "off", "y", "n"})  # to YAML, these are no texts
_MOST_SHOWN = 50
# A value of a first line that is not a header: a decimal number, a date. Whole numbers do name columns.
_VALUE = re.compile(r"[+-]?\d+[.,]\d+|\d{4}-\d\d-\d\d.*|\d\d?[./]\d\d?[./]\d{4}.*", re.ASCII)


def configuration_for(path: Path, target: str | None = None, tell: Callable[[str], object] = str) -> str:
    """Return a configuration for a CSV or JSON-lines file, made from its first records.

    Parameters
    ----------
    path
        The file.
    target
        The column to be predicted; None: the one that looks most like it.
    tell
        Called with a sentence about a target that was guessed. By default nothing is called.

    Raises
    ------
    SampleError
        Where the file cannot be read, or lacks what a configuration needs.

    """
    if str(path) == "-":
        raise SampleError("init needs a file for the configuration to name: standard input has no name")
    sample = read_sample(path)
    marks = sample_marks(sample)
    found = find_target(sample, target, marks)
    inputs = describe_columns(sample, found, marks)
    for name in (str(path), found.name, *sample.doubled):
        if "${" in name:
            raise SampleError(f"{name!r}: ${{ begins a variable in a configuration: rename it")
        if (why := why_no_text(name)) is not None:
            raise SampleError(f"{name!r}: {why}")
    if found.guessed:
        tell(f"guessed the target {found.name!r}: to predict another column, add --target NAME")
    nested = any(isinstance(value, dict | list) for record in sample.records for value in record.values())
    lines = [
        *_source(sample, found),
        *_inputs([column for column in inputs if "${" not in column.name], nested, sample.doubled, found.reading),
        *_model(inputs, found),
        *_outputs(sample, inputs),
        *_limits(inputs),
    ]
    return "\n".join(lines) + "\n"


def _source(sample: Sample, target: Target) -> Iterator[str]:
    yield f"# A configuration for {_shown(sample.path.name)}, made from its first {len(sample.records):,} records."
    yield "# Try it with `streamkernel check`, start it with `streamkernel run`."
    if sample.kind == "csv" and (value := next(filter(_VALUE.fullmatch, sample.columns), None)) is not None:
        yield f"# The first line may be a record: {_shown(value)} is not a usual name. CSV needs a header of names."
    yield "source:"
    yield f"  kind: {sample.kind}"
    yield f"  path: {_text(str(sample.path))}"
    why = "guessed: to predict another column, run init again with --target NAME" if target.guessed else "is predicted"
    yield f"  target: {_text(target.name)}  # {why}"
    if target.reading.doubt:
        yield f"  # The target: {target.reading.doubt}."
    if target.reading.unit:
        yield f"  # The target holds {_with_unit(target.reading)} to predict an amount."
    if target.kind == "float":
        yield "  target_type: float  # a number: str, int or bool, with a classifier, if these are labels"
    else:
        yield f"  target_type: {target.kind}  # a label: float, with a regressor, if it is an amount"
    if sample.kind == "csv":
        yield f"  delimiter: {json.dumps(sample.delimiter)}"
        yield f"  encoding: {sample.encoding}"
        yield f"  multiline: {json.dumps(sample.multiline)}  # whether a quoted field may hold line ends"
    yield "  follow: false  # true: wait for more at the end of the file"


def _inputs(columns: Sequence[SampledColumn], nested: bool, doubled: Sequence[str], target: Reading) -> Iterator[str]:
    """Yield the section that says how columns are read, as far as there is something to say."""
    excluded = [column.name for column in columns if column.reading.identifies]
    if excluded and len(excluded) == len(columns):
        yield "  # Each column seems to name a record rather than describe it. There is no other to learn from."
        excluded = []
    for column in columns:
        if column.reading.unit:
            becomes = "is left out" if column.name in excluded else "is a text, each value a category"
            holds = _with_unit(column.reading)
            yield f"  # The column {_shown(column.name)} {becomes}: it holds {holds} to have numbers."
    types = [(column, said) for column in columns if (said := _type(column, target)) is not None]
    plain = [column for column, said in types if said.partition(" ")[0] == "number"]
    left_out = set(map(id, plain[_MOST_SHOWN:]))
    if excluded or types or nested or doubled or not target.is_plain:
        yield "  # How columns are read; all but those that are excluded are inputs."
        yield "  inputs:"
    if any(column.name in excluded for column in columns if not column.reading.unit):
        yield "    # These name a record rather than describe it; without them learning is faster, and mostly better."
    if doubled:
        yield "    # Several columns have one of these names: rename them to have them as inputs."
    if excluded or doubled:
        yield f"    exclude: [{', '.join(map(_text, [*excluded, *doubled]))}]"
    if nested:
        yield "    nested: flatten  # each value in an object or a list is an input; ignore: none of them is"
    if not target.is_plain:
        yield from (f"    {line}  # of the target" for line in _separators(target, "\n").split("\n"))
    if types:
        yield "    types:"
    for column, said in types:
        if column.reading.doubt:
            yield f"      # {column.reading.doubt}"
        if id(column) not in left_out:
            yield f"      {_text(column.name)}: {said}"
    if left_out:
        yield f"      # and {len(left_out):,} more columns of numbers, in which another text would be a category"
    yield ""


def _with_unit(reading: Reading) -> str:
    return f'numbers with "{reading.unit}", which no setting reads: take that out of the file'


def _separators(reading: Reading, between: str) -> str:
    thousands = f"{between}thousands: {json.dumps(reading.thousands)}" if reading.thousands else ""
    return f"decimal: {json.dumps(reading.decimal)}{thousands}"


def _type(column: SampledColumn, target: Reading) -> str | None:
    """Return how a column is read, and why, where that is not as the source does by itself."""
    reading = column.reading
    if reading.identifies:
        return None
    said = [] if reading.type is None else [f"type: {reading.type}"]
    said += [] if reading.format == "iso" else [f"format: {json.dumps(reading.format)}"]
    if reading.type == "number" and not (reading.is_plain and target.is_plain):
        said.append(_separators(reading, ", "))
    said += [f"na: [{', '.join(map(json.dumps, reading.na))}]"] if reading.na else []
    if not said:
        return None
    only = reading.type if said == [f"type: {reading.type}"] else None
    return f"{only or '{' + ', '.join(said) + '}'}  # {_why(reading)}"


def _why(reading: Reading) -> str:
    if reading.type is None:
        return "missing; all others are numbers"
    if reading.type == "number":
        return "another text is a dead letter"
    if reading.type == "string":
        return "a code: as a number it would lose digits"
    other = "" if reading.other_format is None else f"; {reading.other_format} fits, too"
    return f"parts of the calendar are the inputs{other}"


def _model(inputs: Sequence[SampledColumn], target: Target) -> Iterator[str]:
    yield "# Of the inputs, numbers are scaled, each text is an indicator, and an empty cell is the mean. The columns:"
    for column in inputs[:_MOST_SHOWN]:
        different = "" if column.holds == "nothing" else f", {column.n_different:,} different"
        odd = f"; {_shown(column.odd)} is none" if column.odd else ""
        yield f"#   {_shown(column.name)}: {column.holds}{different}{odd}"
    if len(inputs) > _MOST_SHOWN:
        yield f"#   and {len(inputs) - _MOST_SHOWN:,} more"
    yield "model:"
    estimator = "AdaptiveKernelRegressor" if target.kind == "float" else "AdaptiveKernelClassifier"
    yield f"  - streamkernel.{estimator}: {{seed: 1}}"
    yield ""


def _outputs(sample: Sample, inputs: Sequence[SampledColumn]) -> Iterator[str]:
    folder = f"out/{re.sub(r'[^A-Za-z0-9_-]+', '-', sample.path.name.partition('.')[0]).strip('-') or 'stream'}"
    passing = [one.name for one in inputs if one.finds_a_record and one.name not in line_names() and one.name]
    include = f", include: [{', '.join(map(_text, passing))}]" if passing else ""
    yield f"predictions: {{kind: jsonl, path: {folder}/predictions.jsonl{include}}}"
    yield "# Records that cannot be used, with the reason: fix them and learn them with `streamkernel replay`."
    yield f"dead_letters: {{kind: jsonl, path: {folder}/dead-letters.jsonl}}"
    yield "# A run that was stopped or killed continues from here: each record is learned once."
    yield f"checkpoint: {{directory: {folder}/state}}"
    yield "metrics: {port: 0}  # a free port, which the log names: a status page and metrics for Prometheus"


def _limits(inputs: Sequence[SampledColumn]) -> Iterator[str]:
    longest = max((max(column.longest, len(column.name)) for column in inputs), default=0)
    if longest > LimitsConfig().max_string:
        yield ""
        yield f"limits: {{max_string: {2 * longest}}}  # the longest text, in characters: there are some of {longest:,}"


def _text(text: str) -> str:
    """Return a text as YAML reads it."""
    return text if _PLAIN.match(text) and text.lower() not in _WORDS else json.dumps(text)


def _shown(name: str) -> str:
    """Return a name in one line of a comment."""
    return json.dumps(name[:80], ensure_ascii=False)[1:-1] if name.isprintable() else ascii(name[:80])
