"""Kernels: the exact k(x, x') and the distribution of its random features, one family a file."""

from streamkernel.kernels.additive import ChiSquared, Hellinger, Intersection, JensenShannon
from streamkernel.kernels.arc_cosine import ArcCosine
from streamkernel.kernels.base import FourierKernel, Kernel
from streamkernel.kernels.cauchy import Cauchy
from streamkernel.kernels.dot_product import DotProduct
from streamkernel.kernels.gaussian import Gaussian
from streamkernel.kernels.laplacian import Laplacian
from streamkernel.kernels.mahalanobis import Mahalanobis
from streamkernel.kernels.matern import Matern
from streamkernel.kernels.operators import Product, Scaled, Sum
from streamkernel.kernels.polynomial import Polynomial
from streamkernel.kernels.semigroup import ExponentialSemigroup, ReciprocalSemigroup
from streamkernel.kernels.skewed import SkewedChiSquared, SkewedIntersection
from streamkernel.kernels.spectral import SpectralMixture

__all__ = [
    "ArcCosine",
    "Cauchy",
    "ChiSquared",
    "DotProduct",
    "ExponentialSemigroup",
    "FourierKernel",
    "Gaussian",
    "Hellinger",
    "Intersection",
    "JensenShannon",
    "Kernel",
    "Laplacian",
    "Mahalanobis",
    "Matern",
    "Polynomial",
    "Product",
    "ReciprocalSemigroup",
    "Scaled",
    "SkewedChiSquared",
    "SkewedIntersection",
    "SpectralMixture",
    "Sum",
]
