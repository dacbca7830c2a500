"""Kernel machines that learn from an endless stream."""

from streamkernel.estimators import KernelClassifier, KernelRegressor

__all__ = ["KernelClassifier", "KernelRegressor"]
