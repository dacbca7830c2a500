"""Gaussian-process regression: the posterior, and the estimators of its variance."""

from streamkernel.gaussian_process.variance import TestPointFunctions, VarianceEstimator, VarianceOperator

__all__ = ["TestPointFunctions", "VarianceEstimator", "VarianceOperator"]
