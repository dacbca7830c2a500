"""The state of a model as named arrays and plain values: its SHA-256 digest and its bytes.

Pickle, deepcopy, checkpoints and equality tests all rest on such states. Nothing in them is ever executed. Names and
labels are in them with their types, as JSON can hold them.

Values are described for messages, and dates and times, which are neither inputs nor targets, have advice.
"""

import datetime
import decimal
import hashlib
import json
import math
import numbers
import operator
import re
import struct
from collections.abc import Hashable, Mapping
from typing import Any

import numpy as np
from river import base

Array = np.ndarray[Any, np.dtype[Any]]
#: Field name -> numpy array, or a value that JSON holds (None, bool, int, float, str, lists and dicts of them).
State = dict[str, Any]

_MAGIC = b"SKREC\x01"
#: Integers from here on, either way, are such as Python neither writes as digits nor reads back.
_TOO_LONG = 10**4300
#: Characters of a value in a sentence that refuses it.
_EXCERPT = 80
#: Plain numbers and booleans: no objects, texts or structures, whose descriptions could hide anything.
_DTYPE = re.compile(r"<[fiu][248]|\|[biu]1")


def digest(state: Mapping[str, Any]) -> str:
    """The SHA-256 digest of a state.

    It goes over the fields in their order: name, dtype, shape and little-endian bytes (one NaN for all), or JSON.

    - state: The fields; arrays without spare room.

    Returns 64 hexadecimal digits.

    Examples
    --------
    >>> import numpy as np
    >>> digest({"t": 3, "mean": np.zeros(2)})[:16]
    '4d43c7eea6dff40a'

    """
    sha = hashlib.sha256()
    for name, value in state.items():
        if isinstance(value, np.ndarray) and value.dtype.kind == "f" and (unknown := np.isnan(value)).any():
            # NaN has many bit patterns: None, the null of a frame and 0 / 0 each come in their own.
            value = np.where(unknown, value.dtype.type(np.nan), value)
        head, body = _field(name, value)
        sha.update(json.dumps(head, separators=(",", ":")).encode())
        sha.update(b"\n")
        sha.update(body)
    return sha.hexdigest()


def to_bytes(state: Mapping[str, Any]) -> bytes:
    """Serialize a state: a JSON header that describes the fields, then the arrays, little-endian, one after the other.

    Examples
    --------
    >>> from_bytes(to_bytes({"t": 3, "names": ["a", "b"]}))
    {'t': 3, 'names': ['a', 'b']}

    """
    heads, bodies = [], []
    for name, value in state.items():
        head, body = _field(name, value)
        heads.append(head)
        bodies.append(body)
    described = json.dumps(heads, separators=(",", ":")).encode()
    return b"".join([_MAGIC, struct.pack("<Q", len(described)), described, *bodies])


def from_bytes(data: bytes) -> State:
    """Deserialize a state that `to_bytes` wrote.

    ValueError: The bytes are not such a state, or are cut short.
    """
    start = len(_MAGIC) + 8
    if data[: len(_MAGIC)] != _MAGIC or len(data) < start:
        raise ValueError("not a state: it begins with other bytes; pass the bytes that to_bytes returned")
    (length,) = struct.unpack_from("<Q", data, len(_MAGIC))
    try:
        heads = json.loads(data[start : start + length])
        if not isinstance(heads, list):
            raise ValueError("its header is not a list of fields")
        position = start + length
        state: State = {}
        for head in heads:
            if not isinstance(head["name"], str) or head["name"] in state:
                raise ValueError("a field has no name, or the name of another field")
            if "dtype" in head:
                if not _DTYPE.fullmatch(head["dtype"]):
                    raise ValueError("an array that is not of numbers")
                dtype = np.dtype(head["dtype"])
                shape = tuple(operator.index(n) for n in head["shape"])
                size = dtype.itemsize * int(np.prod(shape, dtype=object))
                if min(shape, default=0) < 0 or position + size > len(data):
                    raise ValueError("cut short")
                flat = np.frombuffer(data, dtype, count=size // dtype.itemsize, offset=position)
                state[head["name"]] = flat.reshape(shape).astype(dtype.newbyteorder("="))
                position += size
            else:
                state[head["name"]] = head["value"]
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise ValueError(f"not a state: {error}; pass the bytes that to_bytes returned") from error
    if position != len(data):
        raise ValueError("not a state: extra bytes at its end; pass the bytes that to_bytes returned")
    return state


def _field(name: str, value: Any) -> tuple[dict[str, Any], bytes]:
    if isinstance(value, np.ndarray):
        little = value.dtype.newbyteorder("<")
        head = {"name": name, "dtype": little.str, "shape": list(value.shape)}
        return head, np.ascontiguousarray(value, little).tobytes()
    return {"name": name, "value": value}, b""


def tag(value: Hashable) -> list[Any]:
    """An input's name or a class label as JSON with its type, so that `"1"`, `1` and `True` stay apart.

    ValueError: The value is not a string, boolean, number, None or tuple of these, or is NaN, or an integer of more
    digits than Python reads back.

    Examples
    --------
    >>> tag("1"), tag(1), tag((True, None))
    (['str', '1'], ['int', 1], ['tuple', [['bool', True], ['NoneType', None]]])

    """
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, str):
        return ["str", str.__str__(value)]  # a subclass may print as something else
    if value is None or isinstance(value, bool):
        return [type(value).__name__, value]
    if isinstance(value, int):
        if abs(value) >= _TOO_LONG:
            raise ValueError(f"a name or label is {shown(value)}, which is too long: at most 4300 digits can be saved")
        return ["int", int(value)]
    if isinstance(value, float):
        if math.isnan(value):
            raise ValueError("a name or label is NaN, which equals nothing: names and labels are strings or numbers")
        return ["float", value.hex()]
    if isinstance(value, tuple):
        return ["tuple", [tag(item) for item in value]]
    kind = type(value).__name__
    raise ValueError(f"{excerpt(value)} is of type {kind}: names and labels are strings, booleans or numbers")


def shown(value: Any) -> str:
    """Return a value for a sentence as Python writes it; an integer that Python does not write by its length.

    A scalar of NumPy is written as the number or string that it is.

    Examples
    --------
    >>> shown("1"), shown(10**5000), shown(np.float64(1.5))
    ("'1'", 'an integer of 16610 bits', '1.5')

    """
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, int) and abs(value) >= _TOO_LONG:
        return f"an integer of {value.bit_length()} bits"
    try:
        return repr(value)
    except ValueError:  # such an integer inside it
        return f"a {type(value).__name__}"


def excerpt(value: Any) -> str:
    """Return a refused argument for a sentence: as `shown` gives it, in one line, cut after 80 characters.

    Examples
    --------
    >>> excerpt(-1.5), excerpt(10**400)
    ('-1.5', '10000000000000000000000000000000000000000000000000000000000000000000000000000000...')
    >>> excerpt(np.eye(2))
    'array([[1., 0.], [0., 1.]])'

    """
    text = shown(value)
    if "\n" in text:
        text = " ".join(text.split())
    return text if len(text) <= _EXCERPT else f"{text[:_EXCERPT]}..."


def untag(tagged: Any) -> Any:
    """The name or label that `tag` encoded.

    ValueError: The argument is nothing that `tag` returns.
    """
    match tagged:
        case ["str", str(value)] | ["bool", bool(value)] | ["int", int(value)] | ["NoneType", None as value]:
            return value
        case ["float", str(value)]:
            return float.fromhex(value)
        case ["tuple", list(items)]:
            return tuple(untag(item) for item in items)
    raise ValueError(f"{tagged!r} is not an encoded name or label")


def real(value: Any) -> float | None:
    """A number or boolean of any type as a float; None for a value of another type.

    Numbers past the largest float are infinite; pandas' NA and NaT are NaN.

    Examples
    --------
    >>> real(True), real(decimal.Decimal("0.5")), real(10**400), real("1")
    (1.0, 0.5, inf, None)

    """
    if type(value).__name__ in _NOT_AVAILABLE:
        return math.nan
    if isinstance(value, np.datetime64 | np.timedelta64):  # numpy takes them for whole numbers of nanoseconds
        return None
    if isinstance(value, np.generic):
        value = value.item()
    if not isinstance(value, numbers.Real | decimal.Decimal):
        return None
    try:
        return float(value)
    except OverflowError:
        return math.inf
    except ValueError:  # a signaling NaN
        return math.nan


# By name, so that pandas need not be there.
_NOT_AVAILABLE = ("NAType", "NaTType")


def arguments(component: base.Base) -> dict[str, Any]:
    """The constructor arguments of an estimator, kernel or loss as plain values, nested objects by class name."""
    return {name: _argument(getattr(component, name)) for name in component._get_params()}


def _argument(value: Any) -> Any:
    if isinstance(value, base.Base):
        return {f"{type(value).__module__}.{type(value).__qualname__}": arguments(value)}
    if isinstance(value, tuple | list):  # JSON knows lists only
        return [_argument(item) for item in value]
    if isinstance(value, dict):  # and as keys strings only
        return [[tag(name), _argument(item)] for name, item in value.items()]
    return value.item() if isinstance(value, np.generic) else value


def rebuild(cls: type, given: dict[str, Any]) -> Any:
    """Construct an estimator from its class and arguments: the callable that its pickle refers to."""
    return cls(**given)


_quoted = json.encoder.encode_basestring


def key_of(tagged: list[Any]) -> int:
    """The 64-bit key of a column, the same for ever: a BLAKE2b hash of its name with type and an indicator's value."""
    kind, name, *value = tagged
    if name[0] == "str":  # as JSON has it, without the encoder that each call of `dumps` makes
        rest = f",{_quoted(value[0])}]" if value else "]"
        text = f'["{kind}",["str",{_quoted(name[1])}]{rest}'
    else:
        text = json.dumps(tagged, separators=(",", ":"), ensure_ascii=False)
    return int.from_bytes(hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "little")


_DURATIONS = (datetime.timedelta, np.timedelta64)
_DATES = (datetime.date, datetime.time, np.datetime64)  # a datetime, and pandas' Timestamp, is a date


def instead_of_input(value: Any) -> str:
    """What to give for an input instead of a date, a time or a duration; empty for any other value.

    Examples
    --------
    >>> instead_of_input(datetime.date(2026, 3, 1))
    'its calendar parts as separate inputs, such as month, weekday and hour'
    >>> instead_of_input(datetime.timedelta(1)), instead_of_input(1.5)
    ('its seconds, from total_seconds()', '')

    """
    if isinstance(value, _DURATIONS):
        return "its seconds, from total_seconds()"
    if isinstance(value, _DATES):
        return "its calendar parts as separate inputs, such as month, weekday and hour"
    return ""


def instead_of_number(value: Any) -> str:
    """What to give for a target instead of a date, a time or a duration; empty for any other value."""
    if isinstance(value, _DURATIONS):
        return "its seconds, from total_seconds()"
    return "the seconds from the record until then" if isinstance(value, _DATES) else ""


def instead_of_label(value: Any) -> str:
    """What to give for a label instead of a date, a time or a duration; empty for any other value."""
    return "a calendar part of it, such as its weekday, or its text" if isinstance(value, _DATES + _DURATIONS) else ""
