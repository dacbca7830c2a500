"""Matrix risk minimization (section 5.2 of the DSPDC paper): its data, and DSPDC, SPDC and SDCA followed on it.

All three work on the same data and projections. SDCA updates m dual variables at a time, each by the bound that the m
changes add up to `safety` times what one alone does, and computes all p matrices of the dual variables, as many
eigenvalue decompositions as an iteration of SPDC takes.
"""

import time
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from benchmarks.solvers.block_solver import BlockSolver, draw
from benchmarks.solvers.matrix_problem import DenseBlocks, MatrixProblem
from streamkernel.compute.window_losses import dual_steps
from streamkernel.window.losses import window_loss

Array = np.ndarray[Any, np.dtype[Any]]


class Look(NamedTuple):
    """How far a run is after a pass."""

    passes: float
    seconds: float  #: of the solver's own work
    projections: int  #: eigenvalue decompositions
    objective: float
    gap: float


class Solver(NamedTuple):
    """A solver of the comparison: its name in the tables, m, q (None: all), and what of it differs from the default."""

    name: str
    dual: int
    primal: int | None
    scale: str = "sampled"
    balance: str | None = None
    safety: str = ""

    def run(self, problem: MatrixProblem, seconds: float, gap: float, passes: float = np.inf) -> list[Look]:
        """Look after each pass until the gap, the seconds or the passes are reached."""
        looks: list[Look] = []
        for look in sdca(problem, self.dual, self.safety) if self.safety else self._dspdc(problem):
            looks.append(look)
            if look.gap <= gap or look.seconds > seconds or look.passes >= passes:
                break
        return looks

    def _dspdc(self, problem: MatrixProblem) -> Iterator[Look]:
        solver = BlockSolver(self.dual, self.primal or problem.data.p, self.scale, self.balance, 0.0, 0)
        for solution in solver.passes(problem, seed=1):
            h = solution.history
            yield Look(h.passes[-1], h.seconds[-1], solution.n_projections, h.objective[-1], h.gap[-1])


def solvers(dual: int, primal: int) -> list[Solver]:
    """The solvers of one panel: m of the n dual variables each, and q of the p matrices for DSPDC."""
    return [
        Solver("DSPDC", dual, primal),
        Solver("DSPDC, thumb and theorem", dual, primal, "thumb", "theorem"),
        Solver("SPDC", dual, None),
        Solver("SDCA, measured blocks", dual, None, safety="measured"),
        Solver("SDCA, safe for any data", dual, None, safety="any"),
    ]


def random_matrices(n: int, p: int, d: int, seed: int = 0, l2: float = 0.01) -> MatrixProblem:
    """The paper's data: matrices of standard normals, labels by the sign of the sum of their traces, smooth hinge."""
    rng = np.random.default_rng(seed)
    D = np.empty((n, p, d, d))
    for row in D:
        row[:] = rng.normal(size=(p, d, d))
    y = np.where(np.einsum("ijkk->i", D) > 0, 1.0, -1.0)
    return MatrixProblem(DenseBlocks(D), y, np.ones(n), window_loss("smooth_hinge"), np.full(p, l2))


def sdca(problem: MatrixProblem, dual: int, safety: str) -> Iterator[Look]:
    """Stochastic dual coordinate ascent by mini-batches of m records, neighbors as those of DSPDC.

    Parameters
    ----------
    problem
        The problem.
    dual
        m.
    safety
        "any", a factor of m, which no data exceed; "measured", the largest of ten draws, as DSPDC's Lambda.

    """
    rng = np.random.default_rng(1)
    data, n = problem.data, problem.data.n
    began = time.perf_counter()
    # Blocks of unequal l2 count by their own: |D_i^j|^2 / l2_j; of metric learning two blocks are of one norm.
    weights = 1.0 / problem.l2[:, 0]
    largest = float(data.squared_norms().max())
    share = weights[0] if np.ptp(weights) == 0 else (weights[0] + weights[1]) / 2
    factor = float(dual)
    if safety == "measured":
        parts = [data.scale(draw(rng, n, dual), slice(None), np.ones(dual)) for _ in range(10)]
        factor = min(max(max(parts) / largest, 1.0), factor)
    step = n / (factor * largest * share)
    beta, G = np.zeros(n), np.zeros((data.p, data.size))
    X = problem.minimizers(G)
    seconds, projections, passes = time.perf_counter() - began, data.p, 0
    while True:
        z = problem.scores(X)
        objective, gap = problem.gap(X, z, beta, G)
        yield Look(passes, seconds, projections, objective, gap)
        began = time.perf_counter()
        for _ in range(-(-n // dual)):
            records = draw(rng, n, dual)
            old = beta[records]
            new = np.empty(len(old))
            dual_steps(problem.loss.kind, old, data.scores(records, X), problem.y[records], step, new)
            G += data.combine(records, new - old)
            beta[records] = new
            X = problem.minimizers(G / n)
        passes += 1
        projections += data.p * -(-n // dual)
        seconds += time.perf_counter() - began
