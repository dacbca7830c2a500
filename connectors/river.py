"""The data sets of River as sources."""

from __future__ import annotations

import inspect
import json
import math
import os
import warnings
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, date, datetime
from itertools import islice
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from river import datasets
from river.datasets import base, synth

from streamkernel.connectors.columns.uses import type_of
from streamkernel.connectors.decode import UndecodableError, decode_inputs, shown
from streamkernel.connectors.names import hint
from streamkernel.connectors.pass_through import PassedColumn
from streamkernel.connectors.pass_through_reader import PassThrough, without_message
from streamkernel.connectors.ports import ColumnUse, Fault, Label, Position, Record, Source, SourceError

_SECONDS_PER_DAY = 86_400
_Pair: TypeAlias = tuple[Mapping[Any, Any], Any]


class RiverSource(Source):
    """Read a data set of River, bundled, synthetic or downloaded before.

    A position is a record number: resuming makes the data set again and skips the records before it. Names that are
    no strings become strings (``0`` becomes ``"0"``); a date is its ordinal, in days and fractions of a day, in UTC
    where it has a time zone.

    Parameters
    ----------
    dataset
        The name of a class in `river.datasets`, such as ``"Bananas"`` or ``"synth.Friedman"``.
    args
        Its keyword arguments, plain values. An argument that is itself a data set is written as a mapping with one
        key, ``{"synth.SEA": {"variant": 1}}``.
    max_string
        The most characters of a name or a string value; more is a fault.

    Raises
    ------
    SourceError
        When River has no such data set, it does not take these arguments, or a record of it has several targets.

    Examples
    --------
    >>> source = RiverSource("synth.Friedman", {"seed": 1})
    >>> source.open()
    >>> record = source.poll(1, timeout=0)[0]
    >>> sorted(record.x)[:3], round(record.y, 2), record.next
    (['0', '1', '2'], 10.47, Position(stream='synth.Friedman{"seed":1}', partition=0, offset=1, known=None))

    """

    def __init__(self, dataset: str, args: Mapping[str, Any] | None = None, max_string: int = 256) -> None:
        self.dataset = dataset
        self.args = dict(args or {})
        self.max_string = max_string
        self._name = _published(dataset)
        try:
            self._stream = self._name + json.dumps(self.args, sort_keys=True, separators=(",", ":"))
        except (TypeError, ValueError):
            raise self._failed("its arguments must be plain values") from None
        self._made, self._seeded = _make(self._name, self.args)
        if "Multi-output" in self._made.task:
            raise self._failed("its records have several targets, only one can be learned")
        self._records: Iterator[_Pair] | None = None
        self._next = 0
        self._ended = False
        self._failure: SourceError | None = None
        self._passing: PassThrough | None = None

    def pass_through(self, columns: Sequence[PassedColumn], *, message: bool = False) -> None:
        """Let each record hold these columns; see `Source.pass_through`."""
        self._passing = without_message(f"river data set {self._name}", columns, message)

    def _failed(self, why: str) -> SourceError:
        return SourceError(f"river data set {self._name}: {why}")

    def open(self, positions: Mapping[int, Position] | None = None) -> None:
        """Make the data set, and skip the records before the position; see `Source.open`.

        Raises
        ------
        SourceError
            When the data set has to be downloaded first, was not downloaded whole, or cannot be resumed there.

        """
        position = next(iter((positions or {}).values()), None)
        if position and not self.resumable:
            raise self._failed("without a seed it cannot be resumed: set its seed")
        if position and position.stream != self._stream:
            raise SourceError(
                f"river data set {self._stream}: the position to resume at is in {position.stream}: use that source "
                "again, or start over with --fresh"
            )
        if isinstance(self._made, base.RemoteDataset) and not _is_downloaded(self._made):
            raise self._failed(
                f"download it first: run python -c 'from river import datasets; datasets.{self._name}().download()'"
            )
        self.close()
        # A data set may keep a state from one pass to the next: every pass has its own.
        self._records = iter(_make(self._name, self.args)[0])
        self._next = 0
        self._ended = False
        self._failure = None
        if position:
            self._next = sum(1 for _ in self._take(self._records, position.offset))
            if self._next < position.offset:
                raise self._failed(
                    f"it has only {self._next:,} records, the position to resume at is {position.offset:,}: "
                    "start over with --fresh"
                )

    def _take(self, records: Iterator[_Pair], count: int) -> Iterator[_Pair]:
        number = self._next
        try:
            for pair in islice(records, count):
                number += 1
                yield pair
        except Exception as error:
            # Whatever a data set raises while it is read, its records before that are good.
            self._failure = self._failed(f"it failed at record {number:,}: {error!r}")

    def poll(self, max_records: int, timeout: float) -> list[Record]:  # noqa: ARG002 - nothing has to be awaited
        """Hand out the next records; see `Source.poll`."""
        if self._records is None:
            raise self._failed("the source is not open")
        if self._failure is not None:
            raise self._failure
        records = []
        position = Position(self._stream, 0, self._next)
        for x, y in self._take(self._records, max_records):
            following = Position(self._stream, 0, position.offset + 1)
            records.append(self._record(x, y, position, following))
            position = following
        self._next = position.offset
        self._ended = len(records) < max_records and self._failure is None
        if self._failure is not None and not records:
            raise self._failure
        return records

    def _record(self, x: Mapping[Any, Any], y: Any, position: Position, following: Position) -> Record:
        values = {str(name): _plain(value) for name, value in x.items()}
        target = _plain(y)
        raw = json.dumps({"x": values, "y": target}, separators=(",", ":"), ensure_ascii=False, default=str)
        data = raw.encode("utf-8", "backslashreplace")
        try:
            inputs, label = decode_inputs(values.items(), self.max_string), self._target(target)
            passed = None if self._passing is None else self._passing({str(name): _shown(x[name]) for name in x})
            return Record(inputs, label, position, following, data, passed=passed)
        except UndecodableError as error:
            return Record({}, None, position, following, data, error.fault)

    def decode(self, raw: bytes, position: Position, following: Position) -> Record:
        """Return the record of what `Record.raw` of another one holds; see `Source.decode`."""
        try:
            pair = json.loads(raw)
            values, target = dict(pair["x"]), pair["y"]
        except (ValueError, TypeError, LookupError, RecursionError):
            fault = Fault("not_json", 'must be a JSON object with the keys "x" and "y"')
            return Record({}, None, position, following, raw, fault)
        return self._record(values, target, position, following)

    def _target(self, value: Any) -> Label | None:
        if value is None or (isinstance(value, float) and math.isnan(value)):
            return None
        if not isinstance(value, str | int | float) or (isinstance(value, float) and math.isinf(value)):
            raise UndecodableError("target", f"the target {shown(value)} is neither a finite number nor a label")
        if isinstance(value, str) and len(value) > self.max_string:
            raise UndecodableError("string_too_long", f"the target is {len(value)} characters long")
        return value

    @property
    def exhausted(self) -> bool:
        """Whether every record was handed out."""
        return self._ended

    @property
    def resumable(self) -> bool:
        """Whether the data set is the same each time: not for a synthetic one without a seed."""
        return self._seeded

    @property
    def total(self) -> tuple[int, str] | None:
        """The number of records, where the data set states one."""
        return None if self._made.n_samples is None else (self._made.n_samples, "records")

    def columns(self, record: Record) -> Sequence[ColumnUse]:
        """Return the inputs of a record; see `Source.columns`."""
        return [ColumnUse(name, shown(value), type_of(value), "input") for name, value in record.x.items()]

    def describe(self) -> str:
        """Return a phrase such as ``"river data set Bananas"``."""
        args = ", ".join(f"{name}={value!r}" for name, value in self.args.items())
        return f"river data set {self._name}" + (f"({args})" if args else "")

    def close(self) -> None:
        """Let go of the data set; closing twice does nothing."""
        with warnings.catch_warnings():
            # River closes its files only at their end, and Python says so where one is left before.
            warnings.simplefilter("ignore", ResourceWarning)
            self._records = None


def _resolve(name: str) -> type[base.Dataset]:
    """Return the class, which is looked for in the lists of names River publishes and nowhere else."""
    known: dict[str, type[base.Dataset]] = {
        prefix + published: found
        for prefix, module in (("", datasets), ("synth.", synth))
        for published in module.__all__
        if inspect.isclass(found := getattr(module, published)) and issubclass(found, base.Dataset)
    }
    if name not in known:
        raise SourceError(f"river has no data set {shown(name)}{hint(name, known)}")
    return known[name]


def _published(name: str) -> str:
    """Return the name under which River publishes a data set."""
    return name.removeprefix("river.").removeprefix("datasets.")


def _make(name: str, args: Mapping[str, Any]) -> tuple[base.Dataset, bool]:
    """Make a data set and those among its arguments; tell whether every seed of theirs is given."""
    kind = _resolve(name)
    made, seeded = dict(args), True
    for key, value in args.items():
        if isinstance(value, Mapping) and len(value) == 1:
            ((inner, inner_args),) = value.items()
            if isinstance(inner, str) and isinstance(inner_args, Mapping | None):
                made[key], inner_seeded = _make(_published(inner), inner_args or {})
                seeded = seeded and inner_seeded
    try:
        dataset = kind(**made)
    except (TypeError, ValueError, AttributeError) as error:
        raise SourceError(f"river data set {name}: it does not take these arguments: {error}") from None
    bound = inspect.signature(kind).bind_partial(**made)
    bound.apply_defaults()
    if issubclass(kind, base.SyntheticDataset):
        seeds = [value for parameter, value in bound.arguments.items() if parameter.startswith("seed")]
        seeded = seeded and None not in seeds
    return dataset, seeded


def _is_downloaded(dataset: base.RemoteDataset) -> bool:
    # Asking the data set itself would make River's directory in the user's home.
    home = Path(os.environ.get("RIVER_DATA", "~/river_data")).expanduser()
    return home.is_dir() and bool(dataset.is_downloaded)


def _plain(value: Any) -> Any:
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, datetime):
        moment = value.astimezone(UTC) if value.tzinfo else value
        midnight = moment.replace(hour=0, minute=0, second=0, microsecond=0)
        return moment.toordinal() + (moment - midnight).total_seconds() / _SECONDS_PER_DAY
    if isinstance(value, date):
        return float(value.toordinal())
    return value


def _shown(value: Any) -> Any:
    return value.isoformat() if isinstance(value, date) else _plain(value)
