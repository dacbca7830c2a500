"""The parts of a scan, each against its plain twin."""

import math

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from streamkernel.compute import scanning as kernels
from streamkernel.compute.decimals import powers_of_five
from tests import naive

POWERS = powers_of_five()
NAMES = [b"a", b"b" * 7, b"c" * 8, b""]
KINDS = [1 | 2 | 4, 1, 8, 0]
LETTERS = st.lists(st.sampled_from([bytes([byte]) for byte in b'"\\,:{} \t\n\x00\xff\x80ab019.e-tn'])).map(b"".join)
TOKENS = st.lists(
    st.sampled_from(
        b'{ } " , : "a": "bbbbbbb": "cccccccc": "": 1 -0.5 1e5 "x" "\\n" true false null [] \xff'.split(b" ")
    )
)
OBJECTS = TOKENS.map(b"".join) | TOKENS.map(lambda tokens: b"{" + b"".join(tokens) + b"}")
PAIRS = st.tuples(
    st.sampled_from(NAMES), st.sampled_from([b"1", b" 2.5", b'"x y"', b"true", b"null ", b"-0", b'"\xc3\xa9"'])
)
GOOD = st.lists(PAIRS).map(lambda pairs: b"{ %b }" % b", ".join(b'"%b" :%b' % pair for pair in pairs))


def _memory(data):
    """Bytes with others round them, and where they begin and end."""
    held = np.frombuffer(b"\xff" * 8 + data + b"9" * 8, np.uint8)
    return held, held.ctypes.data + 8, held.ctypes.data + 8 + len(data)


@given(LETTERS, st.sampled_from([(34, 92, 32), (44, 34, 0), (9, 34, 32)]))
def test_find_stop(data, stops):
    held, at, end = _memory(data)
    stop, is_ascii = kernels.find_stop(at, end, *stops)
    assert (stop - at, is_ascii, held is None) == (*naive.find_stop(data, *stops), False)


@given(LETTERS, st.booleans(), st.sampled_from(NAMES), st.integers(0, 3))
def test_texts_and_keys(data, sound, name, expected):
    held, at, end = _memory(data)
    after = kernels.text_end(at, end, sound)
    assert (after - at if after >= 0 else -1) == naive.text_end(data, sound)
    assert kernels.after_blanks(at, end) - at == naive.after_blanks(data)
    value, twin = kernels.number_between_blanks(at, end, POWERS.ctypes.data), naive.number_between_blanks(data)
    assert value == twin or (math.isnan(value) and math.isnan(twin))
    held, at, end = _memory(name + b'"' + data)
    arrays = np.zeros(4, np.int64), np.zeros((1, 4)), np.zeros((1, 4), np.int64), np.full(4, -1)
    keys, words = kernels.packed_keys(NAMES), kernels.no_words()
    found = kernels.places(words, POWERS, keys, *arrays)
    assert kernels.find_key(at, end, expected, found) == naive.find_key(name + b'"' + data, expected, NAMES)
    key = np.frombuffer(name.ljust(16, b"\0"), np.uint8)
    assert kernels.same_bytes(at, end, key.ctypes.data, len(name)) == naive.same_bytes(name + b'"' + data, name)
    assert held is not None


@given(st.lists(st.tuples(LETTERS, st.integers(0, 2)), max_size=40))
def test_word_number(asked):
    arrays = np.zeros(3, np.int64), np.zeros((1, 3)), np.zeros((1, 3), np.int64), np.full(3, -1)
    keys, words, known = kernels.packed_keys([b""] * 3), kernels.no_words(), []
    found = kernels.places(words, POWERS, keys, *arrays)
    for word, column in asked:
        held, at, end = _memory(word)
        assert kernels.word_number(at, end, column, found) == naive.word_number(word, column, known)
        assert held is not None
    assert words.total[0] == len(known)


def _scanned(data, sound, delimiter=None):
    """A record's numbers and words by column, as the twins have them; None where it is odd."""
    numbers, codes, plain = np.full((1, 4), np.nan), np.full((1, 4), -1), np.zeros(1, np.bool_)
    keys, words, kinds, last = kernels.packed_keys(NAMES), kernels.no_words(), np.array(KINDS), np.full(4, -1)
    held, *_ = _memory(data)
    found = kernels.places(words, POWERS, keys, kinds, numbers, codes, last)
    begins, ends = np.array([8]), np.array([8 + len(data)])
    if delimiter is None:
        kernels.scan_objects(held.ctypes.data, begins, ends, sound, found, plain)
    else:
        kernels.scan_rows(held.ctypes.data, begins, ends, delimiter, sound, found, plain)
    spans = [words.table[code, :2].tolist() if code >= 0 else None for code in codes[0]]
    texts = [span and words.letters[span[0] : span[1]].tobytes() for span in spans]
    return [(repr(number), text) for number, text in zip(numbers[0].tolist(), texts, strict=True)] if plain[0] else None


def _twin(row):
    return row and [(repr(float(value)), word) for value, word in (row.get(key, (math.nan, None)) for key in range(4))]


@settings(max_examples=500, deadline=None)
@given(OBJECTS | GOOD, st.booleans())
def test_scan_objects(data, sound):
    (row,) = naive.scan_objects([data], NAMES, KINDS, sound)
    assert _scanned(data, sound) == (_twin(row) if row else row if row is None else _twin({0: (math.nan, None)}))


@settings(max_examples=500, deadline=None)
@given(
    st.lists(st.sampled_from(["1", " 2.5 ", '"x"', '"1"', "x", "", 'a"', "\u00e9", "\r", '""', "nan"])), st.booleans()
)
def test_scan_rows(fields, sound):
    for data in (",".join([*fields, "1", "", "x", "y"][:4]).encode(), ",".join(fields).encode()):
        assert _scanned(data, sound, 44) == _twin(naive.scan_rows([data], 44, KINDS, sound)[0])
