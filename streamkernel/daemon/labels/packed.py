"""Records that wait for their labels as bytes, packed once when they come: a checkpoint only joins them.

A head of JSON, a line feed, then the numbers as 64-bit floats. The names of the inputs and the labels of the classes
are the same for most records, so they stand in tables, and the head has their places.
"""

from __future__ import annotations

import json
import math
import struct
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

import orjson

from streamkernel.connectors.ports import Label
from streamkernel.daemon.base.errors import CheckpointError
from streamkernel.daemon.base.events import Prediction
from streamkernel.state import tag, untag

__all__ = ["Packer", "PendingRecord"]

_A_NUMBER = -1


class PendingRecord(NamedTuple):
    """A record that waits for its label.

    Attributes
    ----------
    key
        What its label will be known by.
    arrived
        When it came, by the join's clock, in seconds.
    x
        The inputs of the record, by name.
    prediction
        The prediction made for it, of several models that of the published one.
    named
        Of several models, the prediction of each by its name, the published one first; else empty.
    lags
        The targets that were known when it was predicted, the latest first, where a model wants them; else empty.

    """

    key: str
    arrived: float
    x: dict[str, Any]
    prediction: Prediction
    named: Mapping[str, Prediction] = MappingProxyType({})
    lags: tuple[Label, ...] = ()


class _Table:
    """Values many records share, each with a place, forgotten with the last record."""

    def __init__(self) -> None:
        self._places: dict[Any, int] = {}
        self._values: dict[int, tuple[Any, ...]] = {}
        self._users: dict[int, int] = {}
        self._next = 0

    def take(self, value: tuple[Any, ...]) -> int:
        """Return the place of a value, which has one more user now."""
        identity = _identity(value)
        place = self._places.get(identity)
        if place is None:
            place = self._places[identity] = self._next
            self._values[place] = value
            self._users[place] = 0
            self._next += 1
        self._users[place] += 1
        return place

    def release(self, place: int) -> None:
        """Note that a value has one user less."""
        self._users[place] -= 1
        if not self._users[place]:
            value = self._values.pop(place)
            del self._users[place], self._places[_identity(value)]

    def __getitem__(self, place: int) -> tuple[Any, ...]:
        return self._values[place]

    def dump(self) -> list[list[Any]]:
        """Return places and values as JSON has them."""
        return [[place, [tag(item) for item in value]] for place, value in self._values.items()]

    def load(self, dumped: Any) -> None:
        """Load what `dump` gave; ValueError, TypeError or LookupError where it is something else."""
        for place, items in dumped:
            value = tuple(untag(item) for item in items)
            identity = _identity(value)
            if type(place) is not int or place < 0 or place in self._values or identity in self._places:
                raise ValueError("a table gives a place twice")
            self._places[identity], self._values[place], self._users[place] = place, value, 0
            self._next = max(self._next, place + 1)

    def use(self, place: int) -> tuple[Any, ...]:
        """Return the value at a place a file speaks of, which has one more user now."""
        self._users[place] += 1
        return self._values[place]

    @property
    def unused(self) -> bool:
        """Whether there is a value that no record uses."""
        return 0 in self._users.values()


def _identity(value: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return the identity of a value: True and 1 are equal, and are two labels; whole numbers may collide by design."""
    kinds = set(map(type, value))
    if int not in kinds:
        return (value, *map(type, value)) if kinds != {str} else value
    return (tuple(map(repr, value)), None)


class Packer:
    """Packs records that wait for their labels, and knows what they share.

    Examples
    --------
    >>> packer = Packer()
    >>> prediction = Prediction("yes", {"no": 0.25, "yes": 0.75})
    >>> pending = PendingRecord("17", 2.5, {"a": 0.1, "color": "red", "n": 3}, prediction)
    >>> data = packer.pack(pending)
    >>> packer.unpack(data) == pending, len(data)
    (True, 55)

    """

    def __init__(self) -> None:
        self._names = _Table()
        self._classes = _Table()
        self._models = _Table()

    def pack(self, pending: PendingRecord) -> bytes:
        """Write a record as bytes; they are to be released when they are thrown away."""
        key, arrived, x, prediction, named, lags = pending
        values = list(x.values())
        others: list[Any] = []
        if {float}.issuperset(map(type, values)):
            numbers = values
        else:
            numbers = [value for value in values if type(value) is float]
            for place, value in enumerate(values):
                if type(value) is not float:
                    others += (place, value)
        classes, choice = self._pack_prediction(prediction, numbers)
        head = [key, arrived, self._names.take(tuple(x)), others, classes, choice]
        if named or lags:
            head.append(self._pack_others(named, numbers) if named else [])
        if lags:
            head.append(lags)
        return _to_json(head) + b"\n" + struct.pack(f"<{len(numbers)}d", *numbers)

    def unpack(self, data: bytes) -> PendingRecord:
        """Return the record that `pack` wrote."""
        head, numbers = _split(data)
        _, _, names, _, classes, *_ = head
        models = self._models[head[6][0]] if len(head) > 6 and head[6] else ()
        return _join(head, self._names[names], self._labels(classes), numbers, models, self._labels)

    def release(self, data: bytes) -> None:
        """Remove this record from the users of the names and classes it shares."""
        _, _, names, _, classes, _, *extra = _read(data.partition(b"\n")[0])
        others = extra[0] if extra else []
        self._names.release(names)
        if others:
            self._models.release(others[0])
        for place in (classes, *others[1::3]):
            if place is not None:
                self._classes.release(place)

    def dump(self) -> dict[str, Any]:
        """Return what the records share, as JSON has it."""
        models = self._models.dump()
        return {
            "names": self._names.dump(),
            "classes": self._classes.dump(),
            **({"models": models} if models else {}),
        }

    def load(self, tables: Mapping[str, Any], records: Iterable[bytes]) -> list[PendingRecord]:
        """Load what `dump` gave, check the packed records that go with it, and return them unpacked.

        Raises
        ------
        CheckpointError
            They are not what `pack` and `dump` gave.

        """
        try:
            self._names.load(tables["names"])
            self._classes.load(tables["classes"])
            self._models.load(tables.get("models", []))
            pending = [self._check(data) for data in records]
            if self._names.unused or self._classes.unused or self._models.unused:
                raise ValueError("a table has more than the records need")
        except (ValueError, TypeError, LookupError, struct.error, RecursionError) as error:
            raise CheckpointError(f"the records that wait for labels cannot be restored: {error!s:.200}") from None
        return pending

    def _check(self, data: bytes) -> PendingRecord:
        head, numbers = _split(data)
        key, arrived, names_at, others, classes_at, choice, *extra = head
        _verify_lags(key, extra[1:])
        names = self._names.use(names_at)
        classes = None if classes_at is None else self._classes.use(classes_at)
        models, n_extra = self._check_others(key, extra)
        places = others[::2]
        if not (
            type(key) is str
            and key
            and type(arrived) is float
            and 0 <= arrived < math.inf
            and {str}.issuperset(map(type, names))
            and type(others) is list
            and {int}.issuperset(map(type, places))
            and places == sorted(set(places))
            and (not places or (places[0] >= 0 and places[-1] < len(names)))
            and {int, bool, str}.issuperset(map(type, others[1::2]))
            and len(others) == 2 * len(places)
        ):
            raise ValueError(f"the record {key!s:.40} is not a record")
        inputs = len(names) - len(places)
        rest = len(numbers) - inputs - n_extra
        if not all(map(math.isfinite, numbers[:inputs])):
            raise ValueError(f"the record {key!s:.40} has inputs that are not finite numbers")
        _verify_prediction(key, classes, choice, rest)
        return _join(head, names, classes, numbers, models, self._labels)

    def _pack_prediction(self, prediction: Prediction, numbers: list[Any]) -> tuple[int | None, int | None]:
        """Append the numbers of a prediction; return the place of its labels, and which of them it is."""
        if prediction.probabilities:
            labels = tuple(prediction.probabilities)
            numbers += prediction.probabilities.values()
            choice = None
            if prediction.label is not None:
                if prediction.label not in prediction.probabilities:
                    labels += (prediction.label,)
                choice = labels.index(prediction.label)
            return self._classes.take(labels), choice
        if type(prediction.label) is float:
            numbers.append(prediction.label)
            return None, _A_NUMBER
        return (None, None) if prediction.label is None else (self._classes.take((prediction.label,)), 0)

    def _pack_others(self, named: Mapping[str, Prediction], numbers: list[Any]) -> list[Any]:
        """Append the predictions of all but the first model; return the place of the names, and of each three parts.

        These are the place of its labels, which of them it is, and how many numbers it has.
        """
        packed: list[Any] = [self._models.take(tuple(named))]
        for prediction in list(named.values())[1:]:
            before = len(numbers)
            packed += [*self._pack_prediction(prediction, numbers), len(numbers) - before]
        return packed

    def _check_others(self, key: Any, extra: Sequence[Any]) -> tuple[tuple[str, ...], int]:
        """Check the predictions of the other models; return the names of all, and how many numbers they have."""
        if not extra or not extra[0]:
            return (), 0
        place, *parts = extra[0]
        models, counts = self._models.use(place), parts[2::3]
        if not {str}.issuperset(map(type, models)) or len(parts) != 3 * (len(models) - 1):
            raise ValueError(f"the record {key!s:.40} has other predictions than models")
        for classes_at, choice, count in zip(parts[::3], parts[1::3], counts, strict=True):
            classes = None if classes_at is None else self._classes.use(classes_at)
            _verify_prediction(key, classes, choice, count)
        return models, sum(counts)

    def _labels(self, place: int | None) -> tuple[Any, ...] | None:
        return None if place is None else self._classes[place]


def _verify_prediction(key: Any, classes: tuple[Any, ...] | None, choice: Any, count: Any) -> None:
    """Raise ValueError where a prediction with so many numbers is none that a model makes."""
    if classes is None:
        sound = (choice, count) in ((None, 0), (_A_NUMBER, 1))
    else:
        chosen = type(choice) is int and 0 <= choice < len(classes)
        sound = type(count) is int and (
            (chosen and 0 <= count <= len(classes)) or (choice is None and 0 < count <= len(classes))
        )
    if not sound:
        raise ValueError(f"the record {key!s:.40} has no prediction a model makes")


def _verify_lags(key: Any, given: Sequence[Any]) -> None:
    """Raise ValueError where the targets known before a record are none, or more follows."""
    if given:
        (lags,) = given
        kinds = set(map(type, lags)) if type(lags) is list and lags else {None}
        if not kinds <= {str, int, float, bool} or not all(type(y) is not float or math.isfinite(y) for y in lags):
            raise ValueError(f"the record {key!s:.40} has lags that are not targets")


def _join(
    head: list[Any],
    names: tuple[str, ...],
    classes: tuple[Any, ...] | None,
    numbers: tuple[float, ...],
    models: tuple[str, ...],
    labels_at: Callable[[int | None], tuple[Any, ...] | None],
) -> PendingRecord:
    key, arrived, _, others, _, choice, *extra = head
    inputs = len(names) - len(others) // 2
    values: list[Any] = list(numbers[:inputs])
    for place, value in zip(others[::2], others[1::2], strict=True):
        values.insert(place, value)
    parts, lags = extra[0][1:] if extra else [], tuple(extra[1]) if len(extra) > 1 else ()
    start = len(numbers) - sum(parts[2::3])
    prediction = _prediction(classes, choice, numbers[inputs:start])
    pending = PendingRecord(key, arrived, dict(zip(names, values, strict=True)), prediction, lags=lags)
    if not models:
        return pending
    named = {models[0]: prediction}
    for name, place, chosen, count in zip(models[1:], parts[::3], parts[1::3], parts[2::3], strict=True):
        named[name] = _prediction(labels_at(place), chosen, numbers[start : start + count])
        start += count
    return pending._replace(named=named)


def _prediction(classes: tuple[Any, ...] | None, choice: int | None, numbers: tuple[float, ...]) -> Prediction:
    if classes is None:
        return Prediction(numbers[0] if choice == _A_NUMBER else None)
    label = None if choice is None else classes[choice]
    return Prediction(label, dict(zip(classes, numbers, strict=False)) if numbers else None)


def _split(data: bytes) -> tuple[list[Any], tuple[float, ...]]:
    head, _, tail = data.partition(b"\n")
    return _read(head), struct.unpack(f"<{len(tail) // 8}d", tail)


def _read(head: bytes) -> list[Any]:
    # Python's own reader for what orjson would round: whole numbers of more than 64 bits.
    read: list[Any] = orjson.loads(head) if head.startswith(b"[") else json.loads(head)
    return read


def _to_json(head: list[Any]) -> bytes:
    try:
        return orjson.dumps(head)
    except TypeError:
        return b" " + json.dumps(head).encode()
