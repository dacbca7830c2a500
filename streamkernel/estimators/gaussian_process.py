"""Gaussian-process regression."""

from typing import Any

from river import base
from river.optim.losses import Squared

from streamkernel.arguments import new_seed, require_number, require_whole
from streamkernel.estimators.arguments import inputs_of
from streamkernel.estimators.predictors import DistributionPredictor
from streamkernel.finite import clamped
from streamkernel.gaussian_process.features import ProcessFeatures, can_be_quasi_random
from streamkernel.gaussian_process.machine import GaussianProcessMachine, LeastSquaresPosterior
from streamkernel.gaussian_process.variance import VarianceEstimator
from streamkernel.kernels import Gaussian, Kernel
from streamkernel.kernels.spectral import require_nameless
from streamkernel.records.targets import Numbers
from streamkernel.state import excerpt

#: Features in all, of every term: P has the square of this number of entries, 8 GB.
MOST_COLUMNS = 2**15
#: Of the prior's variance: below, float64 does not keep P positive where inputs are copies of each other.
LEAST_NOISE = 1e-6
#: Of the prior's variance, where that is less than 1: beyond, their quotient may overflow.
LARGEST_NOISE = 1e300


class GaussianProcessRegressor(DistributionPredictor, base.MiniBatchRegressor):
    """Gaussian-process regression on a stream: a mean and, for each record, its uncertainty.

    A priori, the function is a Gaussian process with the kernel as its covariance, and targets are its values with
    Gaussian noise. The posterior comes from recursive least squares on random features of the kernel. It is exact for
    the kernel of the features, which approaches the given kernel as `n_features` grows. The model learns each record at
    once, and all records count equally. Its memory is one matrix, however long the stream.

    Parameters
    ----------
    kernel
        The covariance: any kernel with bounded features. These are `Gaussian`, `Laplacian`, `Cauchy`, `Matern`, the
        skewed and the semigroup kernels, `ArcCosine(0)`, and sums, products and multiples of these. None (the default)
        is `Gaussian()` with a bandwidth from the first 200 records.
    noise
        sigma^2, the variance of the noise, at least 1e-6 times the largest k(x, x). With `normalize_y`, it is in units
        of the targets' variance. Defaults to .1.
    n_features
        F, the random frequencies for each term of a sum, each with a cosine and a sine. Memory and the cost of a record
        grow with its square. At most 16,384, or 32,768 over the numbers of a draw. Defaults to 256.
    variance
        The estimator of the variance. None (the default) is the posterior: sigma^2 phi(x)^T P phi(x).
        `VarianceOperator` and `TestPointFunctions` of `streamkernel.gaussian_process` use doubly stochastic gradients.
    normalize_y
        Whether to center and scale targets by running moments. The posterior rescales all earlier targets when the
        moments change. If False, the prior's mean is 0, and k and `noise` are in units of the targets. Defaults to
        True.
    with_noise
        Whether to predict the distribution of a new target with its noise, instead of the function's value. Defaults to
        False.
    drift_rate
        The growth of a coefficient's variance with each record, in units of the prior's variance, which it never
        exceeds. 0 (the default) means a function that never changes.
    quasi_random
        Whether to draw frequencies from scrambled Sobol numbers instead of independent ones. Fewer frequencies then
        suffice, for up to about ten inputs. None (the default) is True if the kernel supports it.
    standardize
        Whether to center and scale numbers. None (the default) follows the kernel. The model uses the moments of the
        first 200 records, and learns those records again with them. After that the moments stay fixed, because a change
        would move the places of learned records. If the deviation of an input grows to 4 times its value, or falls to a
        quarter, the model begins again.
    max_inputs
        The largest number of inputs. The model ignores and counts all others. Defaults to 1,000.
    seed
        The seed of the random features. None (the default) draws one.

    Examples
    --------
    >>> import math, random
    >>> from streamkernel import GaussianProcessRegressor
    >>> model = GaussianProcessRegressor(noise=0.01, n_features=64, seed=1)
    >>> draw = random.Random(1)
    >>> for _ in range(500):
    ...     a = draw.uniform(-3, 3)
    ...     model.learn_one({"a": a}, math.sin(a) + draw.gauss(0, 0.1))
    >>> near, far = (model.predict_one({"a": a}, with_dist=True) for a in (1.0, 6.0))
    >>> abs(near.mu - math.sin(1.0)) < 0.1, near.sigma < 0.05, far.sigma > 5 * near.sigma
    (True, True, True)

    References
    ----------
    [^1]: Rasmussen and Williams, "Gaussian processes for machine learning", 2006, chapter 2.
    [^2]: Dai et al., "Scalable kernel methods via doubly stochastic gradients", 2014, sections 4 and 7.2.
    [^3]: Owen, "Scrambling Sobol' and Niederreiter-Xing points", 1998.

    """

    kernel: Kernel | None
    noise: float
    n_features: int
    variance: VarianceEstimator | None
    normalize_y: bool
    with_noise: bool
    drift_rate: float
    quasi_random: bool | None
    seed: int | None
    _machine: GaussianProcessMachine
    _targets: Numbers

    def __init__(
        self,
        kernel: Kernel | None = None,
        noise: float = 0.1,
        n_features: int = 256,
        variance: VarianceEstimator | None = None,
        normalize_y: bool = True,
        with_noise: bool = False,
        drift_rate: float = 0.0,
        quasi_random: bool | None = None,
        standardize: bool | None = None,
        max_inputs: int = 1_000,
        seed: int | None = None,
    ) -> None:
        self._keep(locals())
        self._targets = Numbers(Squared())
        self._machine = self._build(self._checked_kernel())

    def _checked_kernel(self) -> Kernel:
        kernel = self.kernel or Gaussian()
        if kernel.structured:
            raise ValueError("structured frequencies work only in KernelClassifier and KernelRegressor: use Gaussian()")
        require_nameless(kernel, type(self).__name__)
        if kernel.kappa is None or kernel.feature_bound is None:
            raise ValueError(
                "GaussianProcessRegressor needs kernels with bounded features (Gaussian, Laplacian, Cauchy, Matern, "
                "the skewed and semigroup ones, ArcCosine(0), their sums, products and multiples), "
                f"got {excerpt(kernel)}: KernelRegressor accepts any"
            )
        return kernel

    def _build(self, kernel: Kernel) -> GaussianProcessMachine:
        require_whole("n_features", self.n_features, 1, max(MOST_COLUMNS // kernel.n_parts, 1))
        noise, kappa = self.noise, float(kernel.kappa or 1.0)
        wanted = f"a finite number of at least {LEAST_NOISE:g} times the largest k(x, x), which is {kappa:g}"
        most = LARGEST_NOISE * min(kappa, 1.0)
        require_number("noise", noise, wanted, lambda noise: LEAST_NOISE * kappa <= noise <= most)
        if self.quasi_random and not can_be_quasi_random(kernel):
            raise ValueError(
                f"quasi_random must be False or None with {kernel!r}, which draws its own frequencies: "
                "only Gaussian, Laplacian, Cauchy and Matern can use quasi-random numbers"
            )
        quasi_random = can_be_quasi_random(kernel) if self.quasi_random is None else self.quasi_random
        rho = float(noise) / kappa
        return GaussianProcessMachine(
            inputs_of(self, kernel),
            self._targets,
            ProcessFeatures(kernel, int(self.n_features), quasi_random, new_seed(self.seed)),
            LeastSquaresPosterior(rho, float(self.drift_rate), self.normalize_y),
            None if self.variance is None else self.variance.functions(kernel, rho),
            float(noise),
            self.with_noise,
        )

    @property
    def bandwidth(self) -> float:
        """The kernel's length scale in use; 0 before the first record where it is left to the data."""
        return self._machine.features.bandwidth

    @property
    def memory_bytes(self) -> int:
        """Bytes of matrices and coefficients."""
        return self._machine.nbytes

    def predict_one(self, x: dict[Any, Any], with_dist: bool = False) -> Any:
        """The posterior's mean at one record; 0 before the first.

        Parameters
        ----------
        x
            Inputs by name.
        with_dist
            Whether to give River's Gaussian distribution of the function's value or, with `with_noise`, of a new
            target.

        """
        with self._lock:
            mean, deviation, _ = self._machine.predict([x])[0].tolist()
        if with_dist:
            from streamkernel.estimators.distribution import gaussian

            return gaussian(mean, clamped(deviation * deviation))
        return mean

    @classmethod
    def _unit_test_params(cls) -> Any:
        yield {"n_features": 16, "seed": 1}
