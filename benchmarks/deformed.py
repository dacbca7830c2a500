"""A seeded stream of deformed images: each is shifted, scaled, sheared, rotated and displaced smoothly, at random.

The way of Simard et al., "Best practices for convolutional neural networks applied to visual document analysis", 2003,
and of Loosli, Canu and Bottou, "Training invariant support vector machines using selective sampling", 2007, whose
stream of MNIST's digits has no end.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

Array = np.ndarray[Any, np.dtype[Any]]

#: Images made at a time. Part of the stream: each of its chunks has a generator of its own.
CHUNK = 1_000
#: Smooth displacements are sums of bumps on a grid of so many times so many.
GRID = 5


@dataclass(frozen=True)
class Deformation:
    """How far images are deformed at most (uniformly), the displacement on average; pixels are those of 28 by 28."""

    shift: float = 1.5  #: pixels, along either axis
    scale: float = 0.12  #: the logarithm of the factor of each axis
    shear: float = 0.15  #: its tangent
    rotation: float = 0.17  #: radians
    displacement: float = 0.7  #: pixels, root mean square along either axis: smooth over a quarter of the image


class DeformedImages:
    """An endless stream of deformed images, of which any chunk of 1,000 can be made by itself.

    The images take their turns in an order drawn again after each went once. Pixels are interpolated between the four
    next to their source; what is outside an image is 0. Nothing is left to a library's matrix product: the bytes are
    the same whatever the number of threads.

    Parameters
    ----------
    images, labels
        uint8 of shape (n, side, side), and shape (n,).
    seed, deformation
        Of orders and deformations, and how far these are.

    """

    def __init__(self, images: Array, labels: Array, seed: int, deformation: Deformation | None = None) -> None:
        self._n, self._side, _ = images.shape
        self._padded = np.pad(images, ((0, 0), (1, 1), (1, 1)))
        self._labels = labels
        self._seed = seed
        self._deformation = deformation or Deformation()
        self._bumps = bumps(self._side)

    def chunk(self, number: int) -> tuple[Array, Array]:
        """The chunk of a number: images, float32 from 0 to 1 of shape (1000, side * side), and their labels."""
        at = self._sources(number)
        rng = np.random.default_rng([self._seed, 1, number])
        return sampled(self._padded, at, *self._coordinates(rng)), self._labels[at]

    def _sources(self, number: int) -> Array:
        """The numbers of the images that a chunk is made of."""
        turns, places = np.divmod(np.arange(number * CHUNK, (number + 1) * CHUNK), self._n)
        orders = {turn: np.random.default_rng([self._seed, 0, turn]).permutation(self._n) for turn in np.unique(turns)}
        return np.array([orders[turn][place] for turn, place in zip(turns, places, strict=True)])

    def _coordinates(self, rng: np.random.Generator) -> tuple[Array, Array]:
        """Where the pixels of each image come from: rows and columns, float32 of shape (CHUNK, side, side)."""
        how, pixel = self._deformation, self._side / 28
        shift = pixel * rng.uniform(-how.shift, how.shift, (2, CHUNK))
        factor = np.exp(rng.uniform(-how.scale, how.scale, (2, CHUNK)))
        shear, angle = (rng.uniform(-most, most, CHUNK) for most in (how.shear, how.rotation))
        grid = rng.normal(scale=pixel * how.displacement, size=(2, CHUNK, GRID, GRID))
        cos, sin = np.cos(angle), np.sin(angle)
        # Rotation times shear times scale.
        matrix = (
            (factor[0] * (cos + sin * shear), factor[1] * sin),
            (factor[0] * (cos * shear - sin), factor[1] * cos),
        )
        center = (self._side - 1) / 2
        place = np.arange(self._side, dtype=np.float32) - np.float32(center)
        rows, columns = (
            displaced(grid[axis], self._bumps)
            + (matrix[axis][0][:, None] * place)[:, :, None].astype(np.float32)
            + (matrix[axis][1][:, None] * place + shift[axis][:, None] + center)[:, None, :].astype(np.float32)
            for axis in (0, 1)
        )
        return rows, columns


def bumps(side: int) -> Array:
    """Gaussian bumps side by side, shape (side, GRID), float32; at each place the sum of their squares is 1."""
    centers = np.linspace(0, side - 1, GRID)
    width = (side - 1) / (GRID - 1)
    heights = np.exp(-0.5 * ((np.arange(side)[:, None] - centers) / width) ** 2)
    return np.asarray(heights / np.sqrt((heights**2).sum(axis=1, keepdims=True)), np.float32)


def displaced(grid: Array, bumps: Array) -> Array:
    """Sums of bumps over both axes, float32 of shape (n, side, side), weighted by a grid (n, GRID, GRID)."""
    grid = grid.astype(np.float32)
    rows = np.zeros((*grid.shape[:2], len(bumps)), np.float32)
    for j in range(GRID):
        rows += grid[:, :, j, None] * bumps[:, j]
    out = np.zeros((len(grid), len(bumps), len(bumps)), np.float32)
    for i in range(GRID):
        out += rows[:, i, None, :] * bumps[:, i, None]
    return out


def sampled(padded: Array, at: Array, rows: Array, columns: Array) -> Array:
    """Images interpolated at coordinates.

    Parameters
    ----------
    padded
        uint8 of shape (n, side + 2, side + 2), with a border of zeros.
    at
        Which of them, shape (m,).
    rows, columns
        Coordinates without the border, float32 of shape (m, side, side).

    Returns
    -------
    float32 from 0 to 1 of shape (m, side * side).

    """
    width = padded.shape[1]
    first, down = corners(rows, width)
    second, right = corners(columns, width)
    base = (at * width**2)[:, None, None] + first * width + second
    flat = padded.reshape(-1)
    above = flat[base] * (1 - right) + flat[base + 1] * right
    below = flat[base + width] * (1 - right) + flat[base + width + 1] * right
    mixed = above + (below - above) * down
    return np.asarray(mixed.reshape(len(at), -1) * np.float32(1 / 255))


def corners(coordinates: Array, width: int) -> tuple[Array, Array]:
    """The pixel before each coordinate, by its number with the border, and the share of the next one, float32."""
    inside = np.clip(coordinates + np.float32(1), 0, np.float32(width - 1))
    before = np.minimum(inside.astype(np.int32), width - 2)
    return before, inside - before.astype(np.float32)
