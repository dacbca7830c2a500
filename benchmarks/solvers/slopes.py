"""What an iteration of DSPDC costs, and by how much it shrinks the primal-dual gap.

    python -m benchmarks.solvers.slopes [--out DIR]

On factors A = U V an iteration costs O(d (m + q)), whatever n and p are; on A itself O(m p): CPU seconds against each
dimension, and the slopes of their logarithms. The logarithm of the gap falls by a slope too, which Theorem 2 bounds.
Writes window_slopes.md to --out (benchmarks/results). One thread; random numbers, no data needed.
"""

import time
from typing import Any

import numpy as np

from benchmarks.command import asked
from benchmarks.report import publish, table
from streamkernel.window import DSPDC, Factorized
from streamkernel.window.coordinates import Blocks, rule_of_thumb, step_sizes
from streamkernel.window.dspdc import iterates_of, prepare
from streamkernel.window.linear_model import LinearProblem
from streamkernel.window.losses import ElasticNet, window_loss

#: Where each dimension stands while another is varied: V and one block of its columns are in the second-level cache.
BASE = {"n": 2000, "p": 256, "d": 128, "m": 1, "q": 128}
VARIED: dict[str, dict[str, tuple[int, ...]]] = {
    "factors": {
        "d": (96, 128, 192, 256, 384),
        "q": (64, 96, 128, 192, 256),
        "m": (16, 32, 64, 128, 256),
        "p": (128, 256, 512, 1024),
        "n": (1000, 2000, 4000, 8000),
    },
    "A": {"p": (256, 512, 1024, 2048), "n": (500, 1000, 2000, 4000)},
}
#: In which dimensions the cost is to be of the order 1; in the others of 0.
LINEAR = {"factors": {"d", "q", "m"}, "A": {"p"}}
#: q where the rows' part of the cost is looked at: on A, and where m is varied.
FEW = 8

_ITERATIONS, _ROUNDS = 2000, 9


def iteration_seconds(form: str, n: int, p: int, d: int, m: int, q: int) -> float:
    """CPU seconds of one iteration, the least of some rounds."""
    rng = np.random.default_rng(1)
    U, V = rng.normal(size=(n, d)) / d, rng.normal(size=(d, p))
    X: Any = Factorized(U, V) if form == "factors" else U @ V
    y, loss = np.where(rng.random(n) < 0.5, 1.0, -1.0), window_loss("smooth_hinge")
    problem = LinearProblem(X, y, np.ones(n), loss, ElasticNet(1e-3, 1e-4))
    rows, columns = Blocks(n, m, 1), Blocks(p, q, 2)
    iterates = iterates_of(problem, rows, columns, prepare(X, rows, columns))
    iterates.start(np.zeros(p))
    scale = rule_of_thumb(n, rows.ratio, columns.ratio, iterates.largest_row())
    steps = step_sizes(n, rows.ratio, columns.ratio, scale, 1e-3, loss.gamma)
    count = max(_ITERATIONS // m, 50)
    iterates.advance(steps, count)
    spent = []
    for _ in range(_ROUNDS):
        begin = time.process_time()
        iterates.advance(steps, count)
        spent.append((time.process_time() - begin) / count)
    return min(spent)


def slope(form: str, name: str) -> list[str]:
    """A row of the table: microseconds at each value of a dimension, and the slope of the logarithms."""
    base = BASE | ({"q": FEW} if name == "m" or form == "A" else {})
    values = VARIED[form][name]
    seconds = [iteration_seconds(form, **{**base, name: value}) for value in values]
    fitted = np.polyfit(np.log(values), np.log(seconds), 1)[0]
    figures = ", ".join(f"{value}: {1e6 * s:.2f}" for value, s in zip(values, seconds, strict=True))
    return [form, name, figures, f"{fitted:.2f}", "1" if name in LINEAR[form] else "0"]


def gap_slopes(m: int, q: int, n: int = 400, p: int = 30, l2: float = 0.01) -> list[str]:
    """A row of the table of rates: of ridge regression, with the true Lambda and with the rule of thumb's."""
    rng = np.random.default_rng(1)
    A = rng.normal(size=(n, p))
    y = A @ rng.normal(size=p) + rng.normal(size=n)
    rows, columns = Blocks(n, m, 1), Blocks(p, q, 2)
    problem = LinearProblem(A, y, np.ones(n), window_loss("squared"), ElasticNet(l2))
    true = max(
        float(np.linalg.norm(A[np.ix_(i, j)], 2)) ** 2
        for i in np.split(rows.order, rows.starts[1:-1])
        for j in np.split(columns.order, columns.starts[1:-1])
    )
    a_pass = np.ceil(max(rows.ratio, columns.ratio))
    bound = np.log(step_sizes(n, rows.ratio, columns.ratio, true, l2, 1.0, bounds_gap=True).factor)
    found = []
    for safe in (True, False):
        model = DSPDC(l2=l2, dual=m, primal=q, safe=safe, tol=1e-12, max_passes=20_000)
        iterates = iterates_of(problem, rows, columns, prepare(A, rows, columns))
        scale = true if safe else rule_of_thumb(n, rows.ratio, columns.ratio, iterates.largest_row())
        _, history = model.iterate(iterates, scale, np.zeros(p))
        fitted = np.polyfit(history.passes * a_pass, np.log(history.gap), 1)[0]
        found += [f"{scale:.1f}", f"{fitted:.2e}", f"{history.gap[-1]:.0e}"]
    return [str(m), str(q), found[0], f"{bound:.2e}", *found[1:]]


def main() -> None:
    options = asked(__doc__)
    rows = [slope(form, name) for form, names in VARIED.items() for name in names]
    rates = [gap_slopes(m, q) for m, q in ((1, 1), (1, 5), (1, 30), (4, 5), (100, 3), (400, 1))]
    base = ", ".join(f"{name} = {value}" for name, value in BASE.items())
    publish(
        options,
        "window_slopes",
        "What an iteration of DSPDC costs",
        "CPU microseconds of one iteration, of one thread, at each value of one dimension, the others as in "
        f"{base} (q = {FEW} where m is varied, and on A). On factors A = U V an iteration is O(d (m + q)), on A itself "
        "O(m p): the slope of the logarithms is to be 1 in a dimension that has most of the cost and 0 in one that has "
        "none. What an iteration costs in any case brings slopes below 1, and data that leave a cache above.",
        table(["data", "varied", "microseconds an iteration", "slope", "of the order"], rows),
        "## The gap",
        "Ridge regression on 400 normal rows of 30 inputs, l2 = 0.01: the slope of the natural logarithm of the "
        "primal-dual gap, an iteration. With theta (18) and the true Lambda, the largest squared spectral norm over "
        "the parts of A that may be drawn, Theorem 2 bounds it; the rule of thumb's Lambda has no such bound.",
        table(["m", "q", "true Lambda", "Theorem 2", "slope", "last gap", "rule of thumb", "slope", "last gap"], rates),
        module="solvers.slopes",
    )


if __name__ == "__main__":
    main()
