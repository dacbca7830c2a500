"""Records in columns: what most of them hold is in arrays, and a `Record` is made where somebody asks for one."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import repeat
from typing import Any, NamedTuple, TypeVar, cast, overload

import numpy as np

from streamkernel.connectors.pass_through import Passed
from streamkernel.connectors.ports.connector import ConnectorError
from streamkernel.connectors.ports.record import Label, Position, Record

__all__ = [
    "CodedColumn",
    "Offsets",
    "Raws",
    "RecordColumns",
    "at_places",
    "unusable_places",
    "with_passed",
]

Array = np.ndarray[Any, np.dtype[Any]]
T = TypeVar("T")


@dataclass(frozen=True, eq=False)
class Raws(Sequence[bytes]):
    """The bytes of records in one buffer; those of one are an object where somebody asks for it.

    Parameters
    ----------
    buffer
        The bytes of all. There may be others before, between and after them.
    begins, ends
        Where each begins and ends, int64 of shape (n,).

    Examples
    --------
    >>> raws = Raws.of([b"one", b"", b"three"])
    >>> len(raws.buffer), raws.sizes.tolist(), raws[0], list(raws[1:])
    (10, [3, 0, 5], b'one', [b'', b'three'])

    """

    buffer: bytes
    begins: Array
    ends: Array

    @classmethod
    def of(cls, raws: Sequence[bytes]) -> Raws:
        """Return bytes in one buffer; those that are in one already as they are."""
        if isinstance(raws, cls):
            return raws
        sizes = np.fromiter(map(len, raws), np.int64, len(raws))
        ends = np.cumsum(sizes + 1) - 1
        return cls(b"\n".join(raws), ends - sizes, ends)

    def __len__(self) -> int:
        return len(self.ends)

    def __iter__(self) -> Iterator[bytes]:
        """Make the bytes of each."""
        buffer = self.buffer
        return (buffer[begin:end] for begin, end in zip(self.begins.data, self.ends.data, strict=True))

    @overload
    def __getitem__(self, index: int) -> bytes: ...
    @overload
    def __getitem__(self, index: slice | Array) -> Raws: ...
    def __getitem__(self, index: int | slice | Array) -> bytes | Raws:
        """Return the bytes of one, or those at some indices."""
        if isinstance(index, int):
            return self.buffer[self.begins[index] : self.ends[index]]
        return Raws(self.buffer, self.begins[index], self.ends[index])

    @property
    def sizes(self) -> Array:
        """How many bytes each has."""
        return self.ends - self.begins


@dataclass(frozen=True, eq=False)
class Offsets(Sequence[Position]):
    """Positions of one partition that differ in their offsets only; each is made where somebody asks for it.

    Parameters
    ----------
    stream, partition
        Those of all positions.
    offsets
        int64 of shape (n,).

    Examples
    --------
    >>> offsets = Offsets("-", 0, np.array([0, 12, 30]))
    >>> offsets[1].offset, len(offsets[1:])
    (12, 2)

    """

    stream: str
    partition: int
    offsets: Array

    def __len__(self) -> int:
        return len(self.offsets)

    def __iter__(self) -> Iterator[Position]:
        """Make all positions."""
        # The same as calling Position for each offset, and cheaper.
        fields = zip(repeat(self.stream), repeat(self.partition), self.offsets.tolist(), repeat(None), strict=False)
        return cast("Iterator[Position]", map(tuple.__new__, repeat(Position), fields))

    @overload
    def __getitem__(self, index: int) -> Position: ...
    @overload
    def __getitem__(self, index: slice | Array) -> Offsets: ...
    def __getitem__(self, index: int | slice | Array) -> Position | Offsets:
        """Return a position, or those at some indices."""
        if isinstance(index, int):
            return Position(self.stream, self.partition, int(self.offsets[index]))
        return Offsets(self.stream, self.partition, self.offsets[index])


class CodedColumn(NamedTuple):
    """A column as codes of its distinct values.

    Attributes
    ----------
    name
        The name of the column.
    codes
        The index in `values` of each record's value, int64 of shape (n,); -1 where it has none.
    values
        The distinct values so far; more may follow.

    """

    name: str
    codes: Array
    values: Sequence[Any]


@dataclass(frozen=True, eq=False)
class RecordColumns(Sequence[Record]):
    """Records of one poll. Most of them hold the same inputs.

    Iterating makes all records at once, as a source that knows no columns does.

    Attributes
    ----------
    raws
        The bytes of each record.
    starts, ends
        The position of each record, and of the one after it.
    names
        The names of the inputs that are numbers.
    numbers
        Their values, float64 of shape (n, p); NaN where a record has none.
    texts
        The inputs that are texts.
    targets
        The label of each record; None for an unlabeled one.
    odd
        The records, by index, whose inputs are in no column: they hold something else, or are unusable or blank.
    decode
        Makes the records of raw bytes, with their positions and those of the next ones.
    passed
        What passes of each record, as `Record.passed`; None: nothing does.

    """

    raws: Raws
    starts: Sequence[Position]
    ends: Sequence[Position]
    names: tuple[str, ...]
    numbers: Array
    texts: Sequence[CodedColumn]
    targets: list[Label | None]
    odd: Mapping[int, Record]
    decode: Callable[[Sequence[bytes], Sequence[Position], Sequence[Position]], list[Record]]
    passed: Sequence[Passed | None] | None = None

    def __len__(self) -> int:
        return len(self.raws)

    @overload
    def __getitem__(self, index: int) -> Record: ...
    @overload
    def __getitem__(self, index: slice | Array) -> RecordColumns: ...
    def __getitem__(self, index: int | slice | Array) -> Record | RecordColumns:
        """Return a record, or those at some indices."""
        if not isinstance(index, int):
            return self.chosen(np.arange(len(self))[index])
        place = range(len(self))[index]
        known = self.odd.get(place)
        record = known or self.decode([self.raws[place]], [self.starts[place]], [self.ends[place]])[0]
        return record if self.passed is None else record._replace(passed=self.passed[place])

    def __iter__(self) -> Iterator[Record]:
        """Make all records."""
        plain = np.delete(np.arange(len(self)), list(self.odd))
        rest = iter(self.decode(self.raws[plain], at_places(self.starts, plain), at_places(self.ends, plain)))
        for place in range(len(self)):
            record = self.odd[place] if place in self.odd else next(rest)
            yield record if self.passed is None else record._replace(passed=self.passed[place])

    @property
    def unusable(self) -> list[int]:
        """The indices of the records that have a fault or are blank, ascending."""
        return sorted(index for index, record in self.odd.items() if record.fault is not None or record.blank)

    @property
    def usable(self) -> RecordColumns:
        """The records that have no fault and are not blank."""
        unusable = self.unusable
        return self.chosen(np.delete(np.arange(len(self)), unusable)) if unusable else self

    def filled(self) -> tuple[list[str], Array, dict[str, tuple[Array, list[Any]]]]:
        """Return names and numbers, and codes and values of texts by name, with the inputs of odd records in them.

        The numbers have one more column, all NaN.
        """
        names = {name: place for place, name in enumerate(self.names)}
        texts = {text.name: _used(text) for text in self.texts}
        odd = [(row, name, value) for row, record in self.odd.items() for name, value in record.x.items()]
        for _, name, value in odd:
            if type(value) is not str:
                names.setdefault(name, len(names))
        numbers = np.full((len(self), len(names) + 1), np.nan)
        numbers[:, : len(self.names)] = self.numbers
        for row, name, value in odd:
            if type(value) is str:
                codes, values = texts.setdefault(name, (np.full(len(self), -1), []))
                if value not in values:
                    values.append(value)
                codes[row] = values.index(value)
            else:
                numbers[row, names[name]] = value
        return list(names), numbers, texts

    def to_arrow(self) -> Any:
        """Return the records as a batch of Arrow: positions, numbers, texts as dictionaries, targets.

        Returns
        -------
        batch
            A `pyarrow.RecordBatch` with the columns ``partition``, ``offset``, ``numbers`` and ``texts``, where there
            are any, with a field for each input, and ``target``. What a record does not have is null.

        Raises
        ------
        ConnectorError
            If pyarrow is not installed.

        Examples
        --------
        >>> from streamkernel.connectors.objects import JsonObjects
        >>> raws = [b'{"a": 1, "b": "red", "y": 2}', b'{"a": 0.5, "y": 3}', b'{"b": "red"}', b'{"b": "blue"}']
        >>> places = Offsets("here", 0, np.arange(5))
        >>> batch = JsonObjects("y", "int", 256).records(raws, places[:4], places[1:]).to_arrow()
        >>> batch.column("numbers").to_pylist(), batch.column("texts").to_pylist()[1:3]
        ([{'a': 1.0}, {'a': 0.5}, {'a': None}, {'a': None}], [{'b': None}, {'b': 'red'}])
        >>> batch.column("offset").to_pylist(), batch.column("target").to_pylist()
        ([0, 1, 2, 3], [2, 3, None, None])

        """
        try:
            import pyarrow as pa
        except ImportError:
            raise ConnectorError("to_arrow needs pyarrow: pip install 'streamkernel[parquet]'") from None
        names, numbers, texts = self.filled()
        fields: dict[str, dict[str, Any]] = {
            "numbers": {name: pa.array(one, mask=np.isnan(one)) for name, one in zip(names, numbers.T, strict=False)},
            "texts": {
                name: pa.DictionaryArray.from_arrays(pa.array(codes, mask=codes < 0), pa.array(words, pa.string()))
                for name, (codes, words) in texts.items()
            },
        }
        columns = {
            "partition": pa.array([place.partition for place in self.starts], pa.int32()),
            "offset": pa.array([place.offset for place in self.starts], pa.int64()),
            **{key: pa.StructArray.from_arrays(list(one.values()), list(one)) for key, one in fields.items() if one},
            "target": pa.array(self.targets),
        }
        return pa.record_batch(columns)

    def chosen(self, rows: Array) -> RecordColumns:
        """Return the records at some indices, int64 of shape (m,), ascending."""
        if np.array_equal(rows, np.arange(len(self))):
            return self
        places = rows.tolist()
        return replace(
            self,
            raws=self.raws[rows],
            starts=at_places(self.starts, rows),
            ends=at_places(self.ends, rows),
            numbers=self.numbers[rows],
            texts=[text._replace(codes=text.codes[rows]) for text in self.texts],
            targets=[self.targets[place] for place in places],
            passed=None if self.passed is None else at_places(self.passed, rows),
            odd={new: self.odd[place] for new, place in enumerate(places) if place in self.odd} if self.odd else {},
        )


def unusable_places(records: Sequence[Record]) -> list[int]:
    """Return the indices of the records that have a fault or are blank, ascending."""
    if isinstance(records, RecordColumns):
        return records.unusable
    return [place for place, record in enumerate(records) if record.fault is not None or record.blank]


def _used(text: CodedColumn) -> tuple[Array, list[Any]]:
    """Return codes of the values that records have; a vocabulary may be much larger."""
    used, codes = np.unique(text.codes, return_inverse=True)
    n_missing = int((used < 0).sum())
    return codes - n_missing, [text.values[code] for code in used[n_missing:].tolist()]


def with_passed(records: Sequence[Record], passed: Callable[[int], Passed]) -> Sequence[Record]:
    """Return records with what passes of each usable one, by its index."""
    unusable = set(unusable_places(records))
    found = [None if place in unusable else passed(place) for place in range(len(records))]
    if isinstance(records, RecordColumns):
        return replace(records, passed=found)
    return [record._replace(passed=one) for record, one in zip(records, found, strict=True)]


def at_places(items: Sequence[T], places: Array) -> Sequence[T]:
    """Return the items at some indices, int64 of shape (m,), ascending."""
    if isinstance(items, RecordColumns | Offsets | Raws):
        return cast("Sequence[T]", items[places])
    return [items[place] for place in places.tolist()]
