"""The River-facing classes, one task a file."""

from streamkernel.estimators.base import Outcome
from streamkernel.estimators.classifier import KernelClassifier
from streamkernel.estimators.regressor import KernelRegressor

__all__ = ["KernelClassifier", "KernelRegressor", "Outcome"]
