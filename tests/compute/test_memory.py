"""The memory's search and what its neighbors say, to the bit against a sort of everything."""

import functools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamkernel.adaptive.memory import Memory
from streamkernel.compute import memory as kernels
from streamkernel.compute.memory import (
    FEW,
    LABEL_EXPERTS,
    MANY,
    MEDIUM_SPAN,
    NUMBER_EXPERTS,
    SHORT_SPAN,
    UNIFORM,
)
from tests import naive

#: Past the medium memory, and past a tile of distances.
PAST = max(MEDIUM_SPAN, kernels.TILE) + 300


def _pair(d, span, kept, scales=None, rng=None):
    """A memory and its twin, empty."""
    scales = rng.uniform(0.1, 3, d) if rng else np.ones(d) if scales is None else scales
    memory = Memory(span, kept)
    memory.begin(d)
    memory.set_metric(scales)
    return memory.arrays, naive.Memory(len(memory.arrays.targets), span, memory.arrays.scales)


def _remember(pair, X, targets, weights, residuals):
    for record in zip(X, targets, weights, residuals, strict=True):
        kernels.remember(pair[0], *record)
        naive.remember(pair[1], *record)


def _records(rng, n, d, n_values=None):
    """Records; of few values many are as near as others."""
    X = rng.normal(size=(n, d)) if n_values is None else rng.integers(0, n_values, size=(n, d)) / 4
    return X.astype(np.float32), rng.integers(0, 3, size=n) / 1.0, rng.uniform(0.1, 3, n), rng.normal(size=n)


def _found(memory, s):
    """Places and distances of the nearest in one of the memories."""
    n = min(int(memory.seen[0]), int(memory.span[0]), *((SHORT_SPAN, MEDIUM_SPAN)[s : s + 1]), MANY)
    return memory.places[s, :n].tolist(), memory.nearest[s, :n].tolist()


def _assert_found(pair, x):
    memory, twin = pair
    kernels.search(memory, x)
    for s, neighbors in enumerate(naive.search(twin, x)):
        places, distances = _found(memory, s)
        assert distances == [distance for _, distance in neighbors]
        # The rows may be equal: it is the weight that tells one record from another.
        assert memory.weights[places].tolist() == [weight for (_, _, weight, _), _ in neighbors]
        assert memory.targets[places].tolist() == [target for (_, target, _, _), _ in neighbors]


@given(
    st.integers(0, 4),
    st.integers(1, 40),
    st.integers(1, 60),
    st.lists(st.integers(0, 40), min_size=1, max_size=4),
    st.sampled_from([None, 1, 2, 5]),
    st.integers(0, 1000),
)
def test_the_nearest_of_a_ring_are_those_of_a_sort(d, span, kept, parts, n_values, seed):
    rng = np.random.default_rng(seed)
    pair = _pair(d, span, kept, rng=rng)
    for n in parts:
        _remember(pair, *_records(rng, n, d, n_values))
        for x in _records(rng, 3, d + 2, n_values)[0]:  # two inputs that no record had
            _assert_found(pair, x)


@pytest.mark.parametrize("span", [end + by for end in (SHORT_SPAN, MEDIUM_SPAN) for by in (-1, 0, 1)] + [PAST])
@pytest.mark.parametrize(("d", "n_values"), [(1, 2), (7, None)])
def test_the_short_the_medium_and_the_long_memory(d, span, n_values):
    """While the short one fills, all are one; the ring goes round more than once."""
    rng = np.random.default_rng(d)
    pair = _pair(d, span, 1, rng=rng)
    to_fill = [SHORT_SPAN - 3, 1, 1, 1, 1, 2, MEDIUM_SPAN - SHORT_SPAN - 6, 1, 1, 1, 1, 2]
    for n in (*to_fill, PAST - MEDIUM_SPAN, 1, MEDIUM_SPAN, PAST + 17):
        _remember(pair, *_records(rng, n, d, n_values))
        for x in _records(rng, 2, d, n_values)[0]:
            _assert_found(pair, x)


@given(st.integers(0, 70), st.integers(0, 70), st.integers(0, 30), st.integers(1, 6), st.integers(0, 1000))
def test_insert_nearest(first, n, n_before, n_values, seed):
    """Into none, some or all that were found of newer records before."""
    rng = np.random.default_rng(seed)
    distances = (rng.integers(0, n_values, size=200) / 4).astype(np.float32)
    places, nearest = np.full(MANY, -1), np.full(MANY, np.nan, np.float32)
    before = naive.insert_nearest(distances, 200 - n_before, 200, [])
    for i, (distance, place) in enumerate(before):
        nearest[i], places[i] = distance, place
    found = kernels.insert_nearest(distances, first, first + n, places, nearest, len(before))
    expected = naive.insert_nearest(distances, first, first + n, before)
    assert found == len(expected)
    assert list(zip(nearest[:found].tolist(), places[:found].tolist(), strict=True)) == expected


@pytest.mark.parametrize("n", [0, 1, 63, kernels.TILE, kernels.TILE + 1, 3_000])
@pytest.mark.parametrize("d", [0, 1, 9])
@pytest.mark.parametrize("first", [0, 7])
def test_squared_distances(n, d, first):
    rng = np.random.default_rng(n + d)
    rows, scales, x = (rng.normal(size=shape).astype(np.float32) for shape in ((d, first + n + 5), d, d + 1))
    stop, marks = first + n, np.zeros((2, 0, 0), np.uint64)
    for asked, equal in ((x, x), (np.append(x[:d], np.float32(0)), x[:d])):
        out = np.full(stop + 5, np.nan, np.float32)
        kernels.squared_distances(rows, marks, scales, asked, first, stop, out)
        assert out[first:stop].tobytes() == naive.squared_distances(rows[:, first:stop], scales, equal).tobytes()
        assert np.isnan(np.delete(out, slice(first, stop))).all()  # nothing is done for records that are not asked


def _sparse(rng, n, d):
    """Records that have few of many inputs: the first, and some others."""
    X = np.zeros((n, d), np.float32)
    X[:, 0] = rng.normal(size=n)
    for j in range(3):
        X[np.arange(n), rng.integers(0, d, size=n)] = (j + 1) / 2
    return X


def _marked(memory):
    """Which inputs are marked at each block of places, of the records now and before."""
    words = memory.marks.transpose(1, 0, 2)
    bits = np.unpackbits(words.copy().view(np.uint8).reshape(*words.shape[:2], -1), axis=2, bitorder="little")
    return [[set(np.flatnonzero(row).tolist()) for row in pair] for pair in bits]


@pytest.mark.parametrize("kept", [1, 31, 32, 33, 100])
@pytest.mark.parametrize("d", [kernels.MANY_INPUTS, 130])
def test_marks_of_a_ring(d, kept):
    """Each input that is there is marked, and when a block is full no other."""
    rng = np.random.default_rng(kept)
    memory, _ = pair = _pair(d, kept, kept, rng=rng)
    for n, x in enumerate(_sparse(rng, 3 * kept + 2, d), 1):
        _remember(pair, [x], [1.0], [1.0], [0.0])
        for block, (now, before) in enumerate(_marked(memory)):
            places = range(block * kernels.MARKED, min((block + 1) * kernels.MARKED, kept))
            there = set().union(*(naive.add_marks(memory.rows[:, place]) for place in places))
            assert there <= now | before
            if n % kept not in places:
                assert (now, before) == (there, set())


@given(st.integers(0, 90), st.integers(0, 90), st.integers(0, 1000))
def test_add_marked_squares(first, n, seed):
    """To the bits of all, also of what no record has; marks of what is not there change nothing."""
    rng = np.random.default_rng(seed)
    memory, twin = pair = _pair(150, 1, 180, rng=rng)
    _remember(pair, _sparse(rng, 200, 150), *np.ones((3, 200)))
    memory.marks[1] |= rng.integers(0, 2**63, size=memory.marks[1].shape, dtype=np.uint64) & np.uint64(2**22 - 1)
    x, out, stop = _sparse(rng, 1, 153)[0], np.full(180, np.nan, np.float32), first + n
    out[first:stop] = 0
    given_too = memory.rows, memory.marks, memory.scales, x, first, stop
    kernels.add_marked_squares(*given_too, np.empty(3, np.uint64), out)
    rows = memory.rows[:, first:stop]
    assert out[first:stop].tobytes() == naive.add_marked_squares(rows, twin.scales, x).tobytes()
    assert np.isnan(np.delete(out, slice(first, stop))).all()
    kernels.squared_distances(*given_too, out)
    assert out[first:stop].tobytes() == naive.squared_distances(rows, twin.scales, x).tobytes()


def test_nearest_of_sparse_records():
    """The ring goes round, dense records come between, and the memory is widened past many inputs."""
    rng = np.random.default_rng(5)
    owner = Memory(60, 70)
    owner.begin(60)
    twin = naive.Memory(70, 60, np.ones(200, np.float32))
    for d in (60, 90, 90, 200):
        owner.widen(d)
        X = np.pad(_sparse(rng, 50, d), ((0, 0), (0, 200 - d)))
        X[7, :d] = rng.normal(size=d)
        for i, x in enumerate(X):
            owner_x = np.ascontiguousarray(x[:d])
            record = i / 1.0, rng.uniform(0.1, 3), 0.0
            kernels.remember(owner.arrays, owner_x, *record)
            naive.remember(twin, x, *record)
        for x in (*_sparse(rng, 3, d), X[7, :d]):
            kernels.search(owner.arrays, np.ascontiguousarray(x))
            for s, neighbors in enumerate(naive.search(twin, np.pad(x, (0, 200 - d)))):
                places, distances = _found(owner.arrays, s)
                assert distances == [distance for _, distance in neighbors]
                assert owner.arrays.weights[places].tolist() == [weight for (_, _, weight, _), _ in neighbors]


def test_remember():
    memory, twin = pair = _pair(3, 20, 7, rng=np.random.default_rng(0))
    for i in range(50):
        _remember(pair, *_records(np.random.default_rng(i), 1, 4))
        assert memory.seen[0] == i + 1
        for at, record in list(enumerate(twin.records))[-20:]:
            place = at % 20
            assert memory.rows[:, place].tolist() == record[0].tolist()
            assert (memory.targets[place], memory.weights[place], memory.residuals[place]) == record[1:]


# What neighbors say --------------------------------------------------------------------------------------------------


def _numbers_said(memory, x, smooth, moments):
    out = np.full(len(NUMBER_EXPERTS), np.nan)
    kernels.neighbors_of_number(memory, x, smooth, np.array(moments.numbers), np.empty(MANY), out)
    return out


def _labels_said(memory, x, n_classes):
    out = np.full((len(LABEL_EXPERTS), n_classes), np.nan)
    kernels.neighbors_of_label(memory, x, np.empty(MANY), out)
    return out


@functools.cache
def _moments():
    moments = naive.Moments(naive.TARGETS)
    for y in np.random.default_rng(9).normal(size=60):
        naive.take_target(moments, y)
    return moments


#: Fewer than an expert asks, fewer and more than the short and the medium memory have.
SEEN = pytest.mark.parametrize("n", sorted({0, 1, 2, FEW, MANY - 1, MANY + 3, SHORT_SPAN - 1, MEDIUM_SPAN - 1, PAST}))


@SEEN
def test_neighbors_of_number(n):
    """Of which some are outliers."""
    rng = np.random.default_rng(n)
    pair = _pair(3, PAST - 100, 1, rng=rng)
    X, targets, weights, residuals = _records(rng, n, 3)
    targets[::11] = 1e6
    _remember(pair, X, targets, weights, residuals)
    moments = _moments()
    for x in _records(rng, 5, 3)[0]:
        said = _numbers_said(pair[0], x, 0.7, moments)
        np.testing.assert_allclose(said, naive.neighbors_of_number(pair[1], x, 0.7, moments), rtol=1e-12)
        if n == 0:
            assert said.tolist() == [0.7] * len(said)


@SEEN
@pytest.mark.parametrize("n_classes", [3, 9])
def test_neighbors_of_label(n, n_classes):
    rng = np.random.default_rng(n)
    pair = _pair(3, PAST - 100, 1, rng=rng)
    _remember(pair, *_records(rng, n, 3))
    for x in _records(rng, 5, 3)[0]:
        said = _labels_said(pair[0], x, n_classes)
        np.testing.assert_allclose(said, naive.neighbors_of_label(pair[1], x, n_classes), rtol=1e-12)
        np.testing.assert_allclose(said.sum(axis=1), 1, rtol=1e-12)
        assert said.min() >= (UNIFORM if n else 1) / n_classes


@given(st.integers(0, MANY), st.integers(0, 2), st.sampled_from([2, 3, 9]), st.integers(0, 1000))
def test_parts_of_what_they_say(n, s, n_classes, seed):
    """Of none, of few and of all that were found."""
    rng = np.random.default_rng(seed)
    memory, twin = pair = _pair(2, 40, 1, rng=rng)
    moments = _moments()
    _remember(pair, *_records(rng, 40, 2, 3))
    x, room, numbers = _records(rng, 1, 2, 3)[0][0], np.empty(MANY), np.array(moments.numbers)
    kernels.search(memory, x)
    neighbors = naive.search(twin, x)[s][:n]
    weights = naive._weigh(neighbors)
    total = kernels._weigh(memory, s, n, room)
    np.testing.assert_allclose(room[:n], weights, rtol=1e-14)
    assert total == pytest.approx(weights.sum(), rel=1e-14)
    for name, given_too in (("mean_target", (room, numbers, 0.3)), ("mean_residual", (room,))):
        said = getattr(kernels, name)(memory, s, n, *given_too)
        twin_too = (moments, 0.3) if name == "mean_target" else ()
        assert said == pytest.approx(getattr(naive, name)(neighbors, *twin_too), rel=1e-12)
    assert kernels.median_residual(memory, s, n, room) == pytest.approx(naive.median_residual(neighbors), rel=1e-12)
    p = np.empty(n_classes + 1)
    kernels.vote(memory, s, n, room, p)
    np.testing.assert_allclose(p, naive.vote(neighbors, n_classes + 1), rtol=1e-12)
