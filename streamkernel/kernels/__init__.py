"""Kernels: the exact k(x, x') and the distribution that its random features are drawn from, one family a file."""

from streamkernel.kernels.base import Kernel
from streamkernel.kernels.gaussian import Gaussian

__all__ = ["Gaussian", "Kernel"]
