"""The endless stream of deformed images: the same bytes each time, and each deformation what scipy makes of it."""

import hashlib

import numpy as np

from benchmarks.deformed import CHUNK, DeformedImages

SIDE, N = 14, 40
RNG = np.random.default_rng(3)
IMAGES = RNG.integers(0, 256, (N, SIDE, SIDE)).astype(np.uint8)
LABELS = np.arange(N)


def test_a_chunk_is_a_function_of_seed_and_number():
    stream, again = (DeformedImages(IMAGES, LABELS, 1) for _ in range(2))
    second, labels = stream.chunk(1)
    again.chunk(0)
    assert np.array_equal(second, again.chunk(1)[0])
    assert (second.dtype, second.shape) == (np.float32, (CHUNK, SIDE**2))
    assert 0 <= second.min() <= second.max() <= 1
    assert not np.array_equal(second, stream.chunk(0)[0])
    assert not np.array_equal(second, DeformedImages(IMAGES, LABELS, 2).chunk(1)[0])
    assert labels.tolist() == again.chunk(1)[1].tolist()


def test_the_bytes_are_those_of_every_run():
    pixels, labels = DeformedImages(IMAGES, LABELS, 1).chunk(0)
    assert hashlib.sha256(np.rint(pixels * 255).astype(np.uint8)).hexdigest()[:16] == "64d0f3854aa044c3"
    assert labels[:5].tolist() == [9, 23, 17, 28, 0]
