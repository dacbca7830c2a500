"""Kernel machines that learn from an endless stream."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from streamkernel.estimators.adaptive_classifier import AdaptiveKernelClassifier
    from streamkernel.estimators.adaptive_regressor import AdaptiveKernelRegressor
    from streamkernel.estimators.classifier import KernelClassifier
    from streamkernel.estimators.density_ratio import KernelDensityRatio
    from streamkernel.estimators.gaussian_process import GaussianProcessRegressor
    from streamkernel.estimators.least_squares import KernelLeastSquaresClassifier, KernelLeastSquaresRegressor
    from streamkernel.estimators.multi_label_classifier import KernelMultiLabelClassifier
    from streamkernel.estimators.multi_target_regressor import KernelMultiTargetRegressor
    from streamkernel.estimators.novelty import KernelNoveltyDetector
    from streamkernel.estimators.regressor import KernelRegressor
    from streamkernel.estimators.window_refit import WindowRefit

#: Each estimator and its module, which is imported when the estimator is asked for.
_MODULES = {
    "AdaptiveKernelClassifier": "adaptive_classifier",
    "AdaptiveKernelRegressor": "adaptive_regressor",
    "GaussianProcessRegressor": "gaussian_process",
    "KernelClassifier": "classifier",
    "KernelDensityRatio": "density_ratio",
    "KernelLeastSquaresClassifier": "least_squares",
    "KernelLeastSquaresRegressor": "least_squares",
    "KernelMultiLabelClassifier": "multi_label_classifier",
    "KernelMultiTargetRegressor": "multi_target_regressor",
    "KernelNoveltyDetector": "novelty",
    "KernelRegressor": "regressor",
    "WindowRefit": "window_refit",
}

__all__ = [
    "AdaptiveKernelClassifier",
    "AdaptiveKernelRegressor",
    "GaussianProcessRegressor",
    "KernelClassifier",
    "KernelDensityRatio",
    "KernelLeastSquaresClassifier",
    "KernelLeastSquaresRegressor",
    "KernelMultiLabelClassifier",
    "KernelMultiTargetRegressor",
    "KernelNoveltyDetector",
    "KernelRegressor",
    "WindowRefit",
]


def __getattr__(name: str) -> Any:
    """Import an estimator when it is asked for: its imports take most of a short process."""
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.estimators.{_MODULES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
