"""Kernel machines that learn from an endless stream."""

from streamkernel.estimators import (
    AdaptiveKernelClassifier,
    AdaptiveKernelRegressor,
    GaussianProcessRegressor,
    KernelClassifier,
    KernelDensityRatio,
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
    "KernelNoveltyDetector",
    "KernelRegressor",
    "WindowRefit",
]
