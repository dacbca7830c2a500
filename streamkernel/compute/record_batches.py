"""The records of a batch of Kafka (message format 2): found in its bytes, and written."""

from typing import Any

import numpy as np

from streamkernel.compute.jit import Array, jit

#: What is known of a record, a row each: its offset and time, where its key and its value begin and how long they are
#: (-1: there is none), where its headers begin and how many there are, and how long it is.
OFFSET, TIMESTAMP, KEY, KEY_LENGTH, VALUE, VALUE_LENGTH, HEADERS, N_HEADERS, SIZE = range(9)
_MOST_DELTA, _MOST = 2**31 - 1, 2**63 - 1


@jit
def varint(data: Array, at: int) -> Any:
    """The number that begins at a place, and the place after it: -1 where there is none of at most 64 bits."""
    bits, shift = np.uint64(0), np.uint64(0)
    while 0 <= at < data.shape[0]:
        byte = np.uint64(data[at])
        if shift == np.uint64(63) and byte > np.uint64(1):
            break
        bits |= (byte & np.uint64(127)) << shift
        at += 1
        if byte < np.uint64(128):
            return np.int64(bits >> np.uint64(1)) ^ -np.int64(bits & np.uint64(1)), at
        shift += np.uint64(7)
    return np.int64(0), -1


@jit
def _after_bytes(data: Array, at: int, end: int, least: int) -> Any:
    """The length of what begins at a place, with its length first, where it begins, and where it ends.

    The end is -1 where it ends after `end`, or its length is less than `least`: -1 lets it be missing.
    """
    length, begin = varint(data, at)
    length = max(length, -1)
    ends = begin + max(length, 0)
    return length, begin, ends if begin >= 0 and least <= length <= end - begin else -1


@jit
def _after_headers(data: Array, at: int, end: int, count: int) -> int:
    """Where `count` headers end that begin at a place; -1 where they are damaged."""
    for _ in range(count):
        _, _, at = _after_bytes(data, at, end, 0)
        _, _, at = _after_bytes(data, at, end, -1)
        if at < 0:
            return -1
    return at


@jit
def find_records(data: Array, base_offset: int, first_timestamp: int, found: Array) -> bool:
    """Fill a column of `found` (9, n) for each of the n records that `data` consists of.

    False where it does not, or where offsets do not ascend, or a number is beyond its type: all of it is for another
    reader then.
    """
    at, last = 0, -1
    for i in range(found.shape[1]):
        size, begin = varint(data, at)
        if begin < 0 or size < 0 or size > data.shape[0] - begin:
            return False
        end = begin + size
        _, at = varint(data, begin)  # attributes: Kafka defines none yet
        later, at = varint(data, at)
        delta, at = varint(data, at)
        if not last < delta <= _MOST_DELTA or base_offset > _MOST - delta:
            return False
        if later > _MOST - max(first_timestamp, 0) or later < -_MOST - 1 - min(first_timestamp, 0):
            return False
        last = delta
        found[OFFSET, i], found[TIMESTAMP, i], found[SIZE, i] = base_offset + delta, first_timestamp + later, size
        found[KEY_LENGTH, i], found[KEY, i], at = _after_bytes(data, at, end, -1)
        found[VALUE_LENGTH, i], found[VALUE, i], at = _after_bytes(data, at, end, -1)
        count, at = varint(data, at)
        found[HEADERS, i], found[N_HEADERS, i] = at, count
        at = _after_headers(data, at, end, count)
        if count < 0 or at != end:
            return False
    return bool(at == data.shape[0])


@jit
def _n_bytes(number: int) -> int:
    """How many bytes a number takes."""
    left, n = np.uint64(number << 1 ^ number >> 63), 1
    while left > np.uint64(127):
        left >>= np.uint64(7)
        n += 1
    return n


@jit
def _put(number: int, out: Array, at: int) -> int:
    """Write a number, and return the place after it."""
    left = np.uint64(number << 1 ^ number >> 63)
    while left > np.uint64(127):
        out[at] = np.uint8(left & np.uint64(127) | np.uint64(128))
        left >>= np.uint64(7)
        at += 1
    out[at] = np.uint8(left)
    return at + 1


@jit
def write_records(
    parts: Array, sizes: Array, n_headers: Array, times: Array, room: int, out: Array, cuts: Array
) -> int:
    """Write records to `out`, in batches of at most `room` bytes or of one record; return how many batches there are.

    A record is its key, its value and its headers, which lie one after the other in `parts`; `sizes` (n, 3) says how
    long they are, -1: there is no key. For each batch, and for one more, `cuts` (n + 1, 2) gets the number of its first
    record, and the place of that in `out`.
    """
    n_batches = read = at = first = left = 0
    for i in range(len(sizes)):
        number, later = i - first, times[i] - times[first]
        head = 1 + _n_bytes(sizes[i, 0]) + _n_bytes(sizes[i, 1]) + _n_bytes(n_headers[i])
        size = head + max(sizes[i, 0], 0) + sizes[i, 1] + sizes[i, 2]
        whole = size + _n_bytes(later) + _n_bytes(number)
        if not i or whole + _n_bytes(whole) > left:
            first, number, later, left, whole = i, 0, 0, room, size + 2
            cuts[n_batches] = i, at
            n_batches += 1
        left -= whole + _n_bytes(whole)
        at = _put(whole, out, at)
        out[at] = 0  # attributes
        at = _put(number, out, _put(later, out, at + 1))
        for k in range(3):
            at = _put(sizes[i, k] if k < 2 else n_headers[i], out, at)
            length = max(sizes[i, k], 0)
            out[at : at + length] = parts[read : read + length]
            at, read = at + length, read + length
    cuts[n_batches] = len(sizes), at
    return n_batches
