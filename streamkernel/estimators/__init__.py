"""The River-facing classes, one task a file."""

from streamkernel.estimators.adaptive_classifier import AdaptiveKernelClassifier
from streamkernel.estimators.adaptive_regressor import AdaptiveKernelRegressor
from streamkernel.estimators.base import AdvanceResult
from streamkernel.estimators.classifier import KernelClassifier
from streamkernel.estimators.density_ratio import KernelDensityRatio
from streamkernel.estimators.gaussian_process import GaussianProcessRegressor
from streamkernel.estimators.least_squares_classifier import KernelLeastSquaresClassifier
from streamkernel.estimators.least_squares_regressor import KernelLeastSquaresRegressor
from streamkernel.estimators.novelty import KernelNoveltyDetector
from streamkernel.estimators.regressor import KernelRegressor
from streamkernel.estimators.window_refit import WindowRefit

__all__ = [
    "AdaptiveKernelClassifier",
    "AdaptiveKernelRegressor",
    "AdvanceResult",
    "GaussianProcessRegressor",
    "KernelClassifier",
    "KernelDensityRatio",
    "KernelLeastSquaresClassifier",
    "KernelLeastSquaresRegressor",
    "KernelNoveltyDetector",
    "KernelRegressor",
    "WindowRefit",
]
