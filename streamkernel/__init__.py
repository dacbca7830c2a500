"""Kernel machines that learn from an endless stream."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from streamkernel.estimators import (
        AdaptiveKernelClassifier,
        AdaptiveKernelRegressor,
        GaussianProcessRegressor,
        KernelClassifier,
        KernelDensityRatio,
        KernelLeastSquaresClassifier,
        KernelLeastSquaresRegressor,
        KernelNoveltyDetector,
        KernelRegressor,
        WindowRefit,
    )

__all__ = [
    "AdaptiveKernelClassifier",
    "AdaptiveKernelRegressor",
    "GaussianProcessRegressor",
    "KernelClassifier",
    "KernelDensityRatio",
    "KernelLeastSquaresClassifier",
    "KernelLeastSquaresRegressor",
    "KernelNoveltyDetector",
    "KernelRegressor",
    "WindowRefit",
]


def __getattr__(name: str) -> Any:
    """Import the estimators once one is asked for: a process without a model does without the time that takes."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module("streamkernel.estimators"), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
