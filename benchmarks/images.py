"""Images of digits and their principal components, the inputs of a machine that knows nothing of pixels."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

Array = np.ndarray[Any, np.dtype[Any]]

#: Training images that the components are fitted on.
FITTED = 20_000


@dataclass(frozen=True)
class Images:
    """Images of digits, uint8 of shape (n, side, side), with the digits; the last ones, or those of a file, to test."""

    name: str
    train: Array
    labels: Array
    test: Array
    test_labels: Array


def mnist(folder: Path) -> Images:
    """MNIST's 60,000 training images and 10,000 test images, of mnist.npz."""
    with np.load(folder / "mnist.npz", allow_pickle=True) as data:
        train, test = (np.asarray(data[name], np.uint8).reshape(-1, 28, 28) for name in ("X_train", "X_test"))
        labels, test_labels = (np.asarray(data[name], np.int64) for name in ("y_train", "y_test"))
    return Images("MNIST", train, labels, test, test_labels)


def small() -> Images:
    """The 1,797 images of 8 x 8 pixels that come with scikit-learn; the last 297 are to test."""
    from sklearn.datasets import load_digits

    pixels, labels = load_digits(return_X_y=True)
    images = np.asarray(pixels * (255 / 16), np.uint8).reshape(-1, 8, 8)
    return Images("scikit-learn's digits, 8 x 8", images[:1500], labels[:1500], images[1500:], labels[1500:])


class Components:
    """The first principal components of pixels from 0 to 1, in no other scale.

    Parameters
    ----------
    images
        Those to fit, uint8 of shape (n, side, side).
    n
        How many components; 0 for the pixels as they are.
    fitted
        How many images are fitted. None takes all.

    """

    def __init__(self, images: Array, n: int, fitted: int | None = FITTED) -> None:
        self._n = n
        pixels = flat(images[:fitted])
        self._mean = pixels.mean(axis=0)
        self._axes = np.linalg.eigh(np.cov(pixels, rowvar=False))[1][:, ::-1][:, :n].astype(np.float32)

    def of(self, pixels: Array) -> Array:
        """The components of images, float64 of shape (n, components)."""
        if not self._n:
            return np.asarray(pixels, np.float64)
        return np.asarray((pixels - self._mean) @ self._axes, np.float64)


def flat(images: Array) -> Array:
    """Pixels from 0 to 1, float32 of shape (n, side * side)."""
    return np.asarray(images.reshape(len(images), -1) * np.float32(1 / 255))
