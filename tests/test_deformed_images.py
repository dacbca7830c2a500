"""The endless stream of deformed images: the same bytes each time, and each deformation what scipy makes of it."""

import hashlib

import numpy as np
import pytest
from scipy import ndimage

from benchmarks.deformed import CHUNK, GRID, Deformation, DeformedImages, bumps, displaced

SIDE, N = 14, 40
RNG = np.random.default_rng(3)
IMAGES = RNG.integers(0, 256, (N, SIDE, SIDE)).astype(np.uint8)
LABELS = np.arange(N)
STILL = Deformation(0.0, 0.0, 0.0, 0.0, 0.0)


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


def test_every_image_takes_its_turn():
    stream = DeformedImages(IMAGES[:30], LABELS[:30], 1)  # 1,000 is no multiple of 30
    labels = np.concatenate([stream.chunk(number)[1] for number in range(3)])
    turns = labels.reshape(-1, 30)
    assert (np.sort(turns, axis=1) == np.arange(30)).all()
    assert not (turns[0] == turns[1]).all()


def test_without_a_deformation_images_are_as_they_were():
    pixels, labels = DeformedImages(IMAGES, LABELS, 1, STILL).chunk(0)
    np.testing.assert_allclose(pixels, IMAGES[labels].reshape(CHUNK, -1) / np.float32(255), rtol=0, atol=1e-6)


@pytest.mark.parametrize("part", ["shift", "scale", "shear", "rotation", "displacement"])
def test_a_deformation_moves_pixels_as_scipy_does(part):
    how = Deformation(**{**vars(STILL), part: getattr(Deformation(), part)})
    stream = DeformedImages(IMAGES, LABELS, 1, how)
    pixels, labels = stream.chunk(0)
    rows, columns = stream._coordinates(np.random.default_rng([1, 1, 0]))
    moved = rows - np.arange(SIDE)[:, None], columns - np.arange(SIDE)
    assert max(np.abs(one).max() for one in moved) > 0.15
    for i in range(5):
        expected = ndimage.map_coordinates(
            np.pad(IMAGES[labels[i]].astype(float), 1), [rows[i] + 1, columns[i] + 1], order=1, mode="nearest"
        )
        assert pixels[i] == pytest.approx(expected.ravel() / 255, abs=1e-4)


def test_affine_parts_keep_straight_lines_and_their_sizes():
    how = Deformation(displacement=0.0)
    rows, columns = DeformedImages(IMAGES, LABELS, 1, how)._coordinates(np.random.default_rng(0))
    for coordinates in (rows, columns):
        assert np.abs(np.diff(coordinates, n=2, axis=1)).max() < 1e-4
        assert np.abs(np.diff(coordinates, n=2, axis=2)).max() < 1e-4
    # The area of a pixel: the product of both factors, as rotation and shear keep areas.
    down, right = (np.stack([np.diff(c, axis=axis)[:, 0, 0] for c in (rows, columns)]) for axis in (1, 2))
    area = down[0] * right[1] - down[1] * right[0]
    assert np.abs(np.log(area)).max() < 2 * how.scale + 1e-3
    middle = np.stack([c[:, 6:8, 6:8].mean(axis=(1, 2)) for c in (rows, columns)]) - (SIDE - 1) / 2
    assert 0.9 * how.shift / 2 < np.abs(middle).max() <= how.shift / 2 + 1e-4  # of 14 pixels, not 28


def test_displacements_are_smooth_and_everywhere_as_large():
    grid = np.random.default_rng(0).normal(size=(4_000, GRID, GRID))
    field = displaced(grid, bumps(28))
    assert field.shape == (4_000, 28, 28)
    assert field.std(axis=0) == pytest.approx(np.ones((28, 28)), abs=0.06)
    assert np.diff(field, axis=1).std() < 0.2
    assert field[0] == pytest.approx(bumps(28).astype(float) @ grid[0] @ bumps(28).T, abs=1e-5)
