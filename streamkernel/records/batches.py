"""The batch encoder: the records of a call are validated as a whole, then encoded part by part.

Rows of a frame become the same numbers as their dicts, encoded one after the other.
"""

import math
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from streamkernel.records.frames import Frame, FrameColumns, RecordFrame
from streamkernel.records.inputs import Inputs
from streamkernel.records.rows import Rows
from streamkernel.records.targets import Targets
from streamkernel.state import Array

_ALL = slice(None)


def check_columns(inputs: Inputs, columns: FrameColumns) -> None:
    """Validate the contents of a frame: ValueError where a value cannot be an input."""
    if columns.refused:
        inputs.check([columns.refused])
    if inputs.is_outside(columns.numbers):
        assert inputs.domain is not None
        row, column = np.argwhere(inputs.domain.outside(columns.numbers))[0].tolist()
        inputs.check([{columns.names[column]: float(columns.numbers[row, column])}])


def known_values(inputs: Inputs, columns: FrameColumns, part: slice = _ALL) -> Array:
    """Return the values of rows of a frame in the inputs' columns, float64 of shape (n, d); NaN where not observed."""
    source = np.full(len(inputs), len(columns.names))  # the last column of numbers, which is NaN
    for j, name in enumerate(columns.names):
        place = inputs.columns.numbers.get(name)
        if place is not None:
            source[place] = j
    values = columns.numbers[part].take(source, axis=1)
    for text in columns.texts:
        known = inputs.columns.indicators.get(text.name, {})
        places = np.array([*(known.get(value, -1) for value in text.values), -1])[text.codes[part]]
        rows = np.flatnonzero(places >= 0)
        values[rows, places[rows]] = 1.0
    return values


class FrameEncoder:
    """The encoder of a frame: it reads parts of known inputs by columns, and other parts record by record.

    - inputs: The encoder of records. Rows that are learned add their new inputs to its columns.
    - columns: The contents of the frame.
    - learn: Bool of shape (n,): the rows that may add columns.
    - xs: The rows as dicts, if there are any.

    ValueError: A value cannot be an input. Nothing is changed then.
    """

    def __init__(
        self, inputs: Inputs, columns: FrameColumns, learn: Array, xs: Sequence[Mapping[Any, Any]] = ()
    ) -> None:
        check_columns(inputs, columns)
        self._inputs, self._columns, self._learn, self._xs = inputs, columns, learn, xs

    def parts(self, n_rows: int) -> Iterator[tuple[slice, Rows]]:
        """Yield each part and its encoded rows: `n_rows` at a time, or all that follow if their inputs are known."""
        n, start = len(self._learn), 0
        while start < n or not n:
            part = slice(start, n)
            if len(self._inputs) > n_rows or self._has_unknown(part):
                part = slice(start, min(start + n_rows, n))
            if self._has_unknown(part):
                records = self._xs[part] or [self._record(row) for row in range(part.start, part.stop)]
                yield part, self._inputs.encode(records, self._learn[part].tolist(), is_checked=True)
            else:
                self._count(part)
                yield part, Rows.known(known_values(self._inputs, self._columns, part))
            if not n:
                return
            start = part.stop

    def _has_unknown(self, part: slice) -> bool:
        """Whether rows hold an input without a column that could get one, or a string without an indicator."""
        known, indicators = self._inputs.columns.numbers, self._inputs.columns.indicators
        unknown = [j for j, name in enumerate(self._columns.names) if name not in known] if self._inputs.room else []
        if any((~np.isnan(self._columns.numbers[part, j])).any() for j in unknown):
            return True
        for text in self._columns.texts:
            own = indicators.get(text.name, {})
            is_unknown = np.array([*(value not in own for value in text.values), False])  # the last for no string
            if is_unknown[text.codes[part]].any():
                return True
        return False

    def _count(self, part: slice) -> None:
        """Count the strings that learned rows repeat, and the numbers past the limit that they hold."""
        learn, inputs = self._learn[part], self._inputs
        for text in self._columns.texts:
            n_repeats = int((text.codes[part][learn] >= 0).sum())
            if n_repeats:
                inputs.repeats.add(text.name, n_repeats)
        for j, name in enumerate(self._columns.names):
            if name not in inputs.columns.numbers:
                inputs.n_ignored += int((~np.isnan(self._columns.numbers[part, j][learn])).sum())

    def _record(self, row: int) -> dict[Any, Any]:
        """A row as `learn_one` would be given it."""
        numbers = zip(self._columns.names, self._columns.numbers[row].tolist(), strict=False)
        record = {name: value for name, value in numbers if not math.isnan(value)}
        texts = self._columns.texts
        record.update({text.name: text.values[text.codes[row]] for text in texts if text.codes[row] >= 0})
        return record


#: No record counts as more: beyond, float64 can keep neither the experts' matrices positive nor a step's size.
HEAVIEST = 1e6
#: A batch of records: a dict each, or all of them in columns; dicts may know their columns, and `read` them, too.
Records = Sequence[Mapping[Any, Any]] | Frame
#: Records encoded at a time: a row has as many columns as there are inputs, so that a long call could fill the memory.
SLICE = 256
#: Fewer records are encoded one by one.
_FEW = 8
#: Records times names that they bring, at most, unless a record alone has more: each of them may be a column.
CELLS = 2**22

#: Kinds of arrays of weights: numpy would take texts for numbers, too, and complex ones for their real part.
_NUMBERS = "biufO"
_NO_WEIGHT = "a weight is negative or not finite: weights are numbers from 0 up"


class BatchEncoder:
    """The encoder of the batch that a call learns or predicts: rows of numbers, targets and weights.

    - inputs, targets: The encoders of one record's inputs and of its target. New columns are added to the first, and
      records or inputs past a limit are counted in both.
    """

    def __init__(self, inputs: Inputs, targets: Targets) -> None:
        self.inputs = inputs
        self.targets = targets
        self._warned: set[str] = set()

    def take(
        self, xs: Records, ys: Sequence[Any], ws: Sequence[float] | None
    ) -> Iterator[tuple[Rows, list[Any], Array]]:
        """Validate a batch, then encode it part by part.

        - xs: n records.
        - ys: n targets; None is not learned.
        - ws: n weights of at least 0, which are cut at `HEAVIEST`; None is 1 each.

        Yields encoded rows, targets as plain values (None is not learned) and weights, float64.
        ValueError: A record, target or weight cannot be used. Raised before the first part, when nothing is changed
        yet.
        """
        if len(ys) != len(xs):
            raise ValueError(f"got {len(ys)} targets for {len(xs)} records: pass one per record")
        targets, n_limited = self.targets.prepare(ys)
        weights = np.ones(len(targets)) if ws is None else weights_of(ws, len(targets))
        n_ignored_inputs = self.inputs.n_ignored
        for part, rows in self.encoded(xs, targets):
            yield rows, targets[part], weights[part]
        self.targets.n_limited += n_limited
        # Last, so that a user who makes warnings errors is not left with half a call; past machine and estimator, of
        # the line that learns.
        if n_limited or self.inputs.n_ignored > n_ignored_inputs:
            self.warn_of_ignored(n_ignored_inputs, self.targets.n_limited - n_limited, stacklevel=5)

    def warn_of_ignored(self, n_inputs_before: int, n_targets_before: int, stacklevel: int) -> None:
        """Warn, once each, where more inputs or targets were ignored than there had been before."""
        ignored = []
        if self.inputs.n_ignored > n_inputs_before:
            ignored.append(f"inputs past max_inputs={self.inputs.max_inputs} are ignored, counted in n_ignored_inputs")
        if self.targets.n_limited > n_targets_before and self.targets.limit_warning:
            ignored.append(self.targets.limit_warning)
        for message in ignored:
            if message not in self._warned:
                self._warned.add(message)
                warnings.warn(message, RuntimeWarning, stacklevel=stacklevel)

    def encoded(self, xs: Records, targets: Sequence[Any]) -> Iterator[tuple[slice, Rows]]:
        """Validate and encode records, which add columns where their target is not None; yields each part and its rows.

        Records of known numbers only are one part, others are cut into slices. Records that can `read` their columns,
        as a `Frame` can, are encoded by these.
        """
        read: Callable[[], FrameColumns] | None = getattr(xs, "read", None)
        if read:
            learn = np.array([y is not None for y in targets], np.bool_)
            yield from FrameEncoder(self.inputs, read(), learn).parts(SLICE)
            return
        assert not isinstance(xs, Frame)
        if len(xs) >= _FEW and self.inputs.domain is None and (columns := _columns_with_texts(xs)):
            learn = np.array([y is not None for y in targets], np.bool_)
            yield from FrameEncoder(self.inputs, columns, learn, xs).parts(SLICE)
            return
        try:
            if len(xs) > SLICE:
                rows = self.inputs.encode_plain(xs) if len(self.inputs) <= SLICE else None
                if rows is not None:
                    yield slice(len(xs)), rows
                    return
                self.inputs.check(xs)
            for part in _slices(xs):
                yield part, self.inputs.encode(xs[part], [y is not None for y in targets[part]], len(xs) > SLICE)
        except (AttributeError, TypeError) as error:
            wrong = [x for x in xs if not hasattr(x, "items")]
            if not wrong:
                raise
            raise TypeError(f"x must be a dict of feature values by name, not {type(wrong[0]).__name__}") from error


def _columns_with_texts(xs: Sequence[Mapping[Any, Any]]) -> FrameColumns | None:
    """The columns of records that all have the same inputs, some of them texts; None of others."""
    if set(map(type, xs)) != {dict}:
        return None
    names = tuple(xs[0])
    if str not in map(type, xs[0].values()) or set(map(type, names)) != {str} or set(map(tuple, xs)) != {names}:
        return None
    columns = RecordFrame(xs).read()
    return None if columns.refused else columns


def _slices(xs: Sequence[Mapping[Any, Any]]) -> Iterator[slice]:
    """Slices of at most `SLICE` records, fewer where they have very many names."""
    start, n_names = 0, 0
    for stop, x in enumerate(xs):
        n_names += len(x)
        if stop > start and (stop - start == SLICE or (stop - start + 1) * n_names > CELLS):
            yield slice(start, stop)
            start, n_names = stop, len(x)
    yield slice(start, len(xs))


def weights_of(ws: Sequence[float] | None, n: int) -> Array:
    """n weights, float64, cut at `HEAVIEST`; None is 1 each. ValueError where one is no number from 0 up."""
    if ws is None:
        return np.ones(n)
    try:
        given = np.asarray(ws)
        weights = np.array(given, np.float64) if given.dtype.kind in _NUMBERS else None
    except (OverflowError, TypeError, ValueError):  # an integer past the largest float, or no number at all
        raise ValueError(_NO_WEIGHT) from None
    if weights is None or weights.ndim != 1 or np.ma.is_masked(ws):
        raise ValueError(_NO_WEIGHT)
    if len(weights) != n:
        raise ValueError(f"got {weights.size} weights for {n} records: pass one per record")
    if not (np.isfinite(weights) & (weights >= 0)).all():
        raise ValueError(_NO_WEIGHT)
    return np.asarray(np.minimum(weights, HEAVIEST))
