"""The algorithms that the DSG paper compares with, each with the parameters it is chosen from."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from benchmarks.paper.baselines.fogd import Fogd
from benchmarks.paper.baselines.gaussian import FourierMap, KernelMap, NystromMap
from benchmarks.paper.baselines.learner import hinge, square
from benchmarks.paper.baselines.nogd import Nogd
from benchmarks.paper.baselines.norma import Norma
from benchmarks.paper.baselines.pegasos import Pegasos
from benchmarks.paper.baselines.sdca import FeatureSDCA, KernelSDCA, hinge_step, square_step
from benchmarks.paper.problems import Problem
from benchmarks.paper.runs import Make

#: Step sizes of FOGD and NOGD; features of a row have norm 1.
_ETAS = (0.03, 0.1, 0.3, 1.0)


class Contender(NamedTuple):
    """An algorithm and what its parameter is chosen from: names of values, and what makes it with them."""

    name: str
    makes: list[tuple[str, Make]]


def contenders(
    regularization: float, rank: int, regression: bool, weights: tuple[float, ...] = (1.0,)
) -> list[Contender]:
    """NORMA, k-SDCA, and on stored features r- and n-Pegasos, r- and n-SDCA, FOGD and NOGD.

    Parameters
    ----------
    regularization
        nu of the paper.
    rank
        r: frequencies, landmarks, and the budget of NOGD. FOGD has 4 r frequencies, as its authors set it.
    regression
        Half the squared error instead of the hinge.
    weights
        What nu is multiplied by, for those that it decides about.

    """
    derivative, step = (square, square_step) if regression else (hinge, hinge_step)
    nus = [(f"nu x {w:g}", w * regularization) for w in weights]

    def pegasos(nu: float, map_of: Callable[[Problem, int], KernelMap]) -> Make:
        def make(problem: Problem) -> Pegasos:
            features = map_of(problem, rank)
            return Pegasos(features, nu, derivative, longest_step(problem, features) if regression else np.inf)

        return make

    def sdca(nu: float, map_of: Callable[[Problem, int], KernelMap]) -> Make:
        return lambda problem: FeatureSDCA(problem.n, map_of(problem, rank), nu, step)

    def k_sdca(nu: float) -> Make:
        return lambda problem: KernelSDCA(problem.n, problem.bandwidth, nu, step)

    def fogd(eta: float) -> Make:
        return lambda problem: Fogd(fourier(problem, 4 * rank), eta, derivative)

    def nogd(eta: float) -> Make:
        return lambda problem: Nogd(problem.bandwidth, eta, rank, derivative)

    return [
        Contender("NORMA", [("", lambda problem: Norma(problem.bandwidth, regularization, derivative))]),
        Contender("k-SDCA", [(name, k_sdca(nu)) for name, nu in nus]),
        Contender("r-Pegasos", [(name, pegasos(nu, fourier)) for name, nu in nus]),
        Contender("n-Pegasos", [(name, pegasos(nu, nystrom)) for name, nu in nus]),
        Contender("r-SDCA", [(name, sdca(nu, fourier)) for name, nu in nus]),
        Contender("n-SDCA", [(name, sdca(nu, nystrom)) for name, nu in nus]),
        Contender("FOGD", [(f"eta {eta:g}", fogd(eta)) for eta in _ETAS]),
        Contender("NOGD", [(f"eta {eta:g}", nogd(eta)) for eta in _ETAS]),
    ]


def fourier(problem: Problem, r: int) -> FourierMap:
    """The Fourier features of a problem."""
    return FourierMap(problem.X.shape[1], r, problem.bandwidth, seed=1)


def nystrom(problem: Problem, r: int) -> NystromMap:
    """The Nystrom features of a problem; the paper does not count the time they take to prepare, we do."""
    return NystromMap(problem.X, r, problem.bandwidth, seed=1)


def longest_step(problem: Problem, features: KernelMap) -> float:
    """1 / lambda_1 of the features' covariance on the first 1,024 rows."""
    phi = features(problem.X[:1_024]).astype(np.float64)
    return float(1 / np.linalg.eigvalsh(phi.T @ phi / len(phi))[-1])
