"""A model of each kind that learns frames."""

from streamkernel import (
    AdaptiveKernelClassifier,
    AdaptiveKernelRegressor,
    KernelClassifier,
    KernelLeastSquaresClassifier,
    KernelLeastSquaresRegressor,
    KernelRegressor,
    losses,
)


def models_of_each_kind(seed, max_inputs, standardize):
    rest = {"seed": seed, "max_inputs": max_inputs, "standardize": standardize}
    growing = {"batch_size": 7, "block_size": 5, "max_features": 40, **rest}
    adaptive = {"n_features": 6, "metric_schedule": (10, 40), "tree_window": 60, "n_trees": 2, **rest}
    return {
        "softmax": KernelClassifier(max_classes=3, **growing),
        "two sides": KernelClassifier(loss=losses.Log(), **growing),
        "numbers": KernelRegressor(**growing),
        "adaptive classes": AdaptiveKernelClassifier(max_classes=3, **adaptive),
        "adaptive numbers": AdaptiveKernelRegressor(**adaptive),
        "least squares classes": KernelLeastSquaresClassifier(max_classes=3, n_features=6, **rest),
        "least squares numbers": KernelLeastSquaresRegressor(n_features=6, **rest),
    }
