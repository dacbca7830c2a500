"""Twins of the walk through a batch of Kafka: a record after the other, in numbers without an end."""

_INT32, _INT64 = 2**31, 2**63


class _Refused(Exception):
    """What is read is no batch, or an odd one."""


def varint(data, at):
    groups = []
    for byte in data[at : at + 10] if at >= 0 else b"":
        groups.append(byte % 128)
        if byte < 128:
            bits = sum(group * 128**place for place, group in enumerate(groups))
            if bits < 2 * _INT64:
                return -(bits + 1) // 2 if bits % 2 else bits // 2, at + len(groups)
    return 0, -1


def find_records(data, base_offset, first_timestamp, n):
    """A list of nine numbers for each record; None where the data is refused."""
    at, rows = 0, []
    try:
        for _ in range(n):
            row, at = _record(data, at, base_offset, first_timestamp)
            if row[0] < base_offset or any(earlier[0] >= row[0] for earlier in rows):
                return None
            rows.append(row)
    except _Refused:
        return None
    return rows if at == len(data) else None


def _number(data, at):
    number, after = varint(data, at)
    if after < 0:
        raise _Refused
    return number, after


def _after_bytes(data, at):
    length, begin = _number(data, at)
    end = begin + max(length, 0)
    if end > len(data):
        raise _Refused
    return max(length, -1), begin, end


def _after_headers(data, at, count):
    for _ in range(count):
        name_length, _, at = _after_bytes(data, at)
        _, _, at = _after_bytes(data, at)
        if name_length < 0:
            raise _Refused
    return at


def _record(data, at, base_offset, first_timestamp):
    size, begin, end = _after_bytes(data, at)
    _, at = _number(data, begin)
    later, at = _number(data, at)
    delta, at = _number(data, at)
    key_length, key, at = _after_bytes(data, at)
    value_length, value, at = _after_bytes(data, at)
    n_headers, headers = _number(data, at)
    at = _after_headers(data, headers, n_headers)
    offset, timestamp = base_offset + delta, first_timestamp + later
    if size < 0 or n_headers < 0 or at != end or delta >= _INT32:
        raise _Refused
    if not (offset < _INT64 and -_INT64 <= timestamp < _INT64):
        raise _Refused
    return [offset, timestamp, key, key_length, value, value_length, headers, n_headers, size], end


def _put(number):
    number, groups = 2 * number if number >= 0 else -2 * number - 1, []
    while number > 127:
        groups.append(number % 128 + 128)
        number //= 128
    return bytes([*groups, number])


def _n_bytes(number):
    return len(_put(number))


def write_records(records, times, room):
    """The records of each batch, of their keys, values, headers and how many headers there are."""
    batches = []
    for (key, value, headers, n_headers), time in zip(records, times, strict=True):
        rest = (b"\1" if key is None else _put(len(key)) + key) + _put(len(value)) + value
        rest += _put(n_headers) + headers
        while True:
            first, done = batches[-1] if batches else (time, [])
            one = b"\0" + _put(time - first) + _put(len(done)) + rest
            one = _put(len(one)) + one
            if (done and sum(map(len, done)) + len(one) <= room) or (not done and batches):
                done.append(one)
                break
            batches.append((time, []))
    return [done for _, done in batches]
