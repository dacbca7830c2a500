"""Algorithm 1 and its two successors as the papers print them: plain loops, every coefficient and beta kept apart.

Frequencies come from the package's own draw, so that only the algorithms differ.
"""

import math

import numpy as np

from streamkernel.compute.gaussians import feature_words
from streamkernel.growth.base import GrowthContext


def frequencies(machine, block):
    """W_k of a machine, in radians, shape (d, F)."""
    words = np.empty(machine.expansion.block_size, np.uint64)
    feature_words(np.uint64(machine.expansion.seed), block * machine.expansion.block_size, words)
    keys = machine.inputs.columns.keys
    out = np.empty((len(keys), len(words)))
    machine.expansion.kernel.frequencies(words, keys, machine.expansion.bandwidth, out)
    return 2 * math.pi * out


def phi(x, W):
    return np.concatenate([np.cos(x @ W), np.sin(x @ W)]) / math.sqrt(W.shape[1])


def algorithm_1(xs, ys, W, theta, nu, derivative):
    """DSG: one record and one feature a step, gamma = theta / t. Returns f of each record before its step."""
    alphas, seen = [], []
    for t, (x, y) in enumerate(zip(xs, ys, strict=True), start=1):
        gamma = theta / t
        f = sum(phi(x, W(i)) @ a for i, a in enumerate(alphas))
        seen.append(f)
        alphas = [(1 - gamma * nu) * a for a in alphas]
        alphas.append(-gamma * derivative(y, f) * phi(x, W(t - 1)))
    return seen


def udsg(xs, ys, W, theta, nu, derivative, grow, reuse, pick):
    """The same, but the last `reuse` of every `grow + reuse` steps touch the old block `pick(t, n)`."""
    alphas, seen = [], []
    for t, (x, y) in enumerate(zip(xs, ys, strict=True), start=1):
        gamma = theta / t
        f = sum(phi(x, W(i)) @ a for i, a in enumerate(alphas))
        seen.append(f)
        alphas = [(1 - gamma * nu) * a for a in alphas]
        g = derivative(y, f)
        if (t - 1) % (grow + reuse) < grow:
            alphas.append(-gamma * g * phi(x, W(len(alphas))))
        else:
            k = pick(t - 1, len(alphas))
            alphas[k] = alphas[k] - gamma * g * phi(x, W(k))
    return seen


def cdsg(xs, ys, W, theta, nu, derivative, cap, variance):
    """CDSG: of the old blocks, the one with the longest step that (9) allows, found by its roots; of a cap of 1 the
    one where (9) holds by most at gamma."""
    alphas, betas, seen, reused = [], [], [], 0
    for t, (x, y) in enumerate(zip(xs, ys, strict=True), start=1):
        gamma = theta / t
        f = sum(phi(x, W(i)) @ a for i, a in enumerate(alphas))
        seen.append(f)
        g = derivative(y, f)
        best, best_step, most = None, 0.0, 0.0
        for k, beta in enumerate(betas):
            if cap == 1:
                right, left = inequality_9(beta, g, gamma, gamma, variance)
                if right - left > most:
                    best, best_step, most = k, gamma, right - left
                continue
            step = longest_step(beta, g, gamma, cap * gamma, variance)
            if step > best_step:
                best, best_step = k, step
        s = gamma if best is None else best_step
        alphas = [(1 - s * nu) * a for a in alphas]
        betas = [(1 - s * nu) * b for b in betas]
        if best is None:
            alphas.append(-gamma * g * phi(x, W(len(alphas))))
            betas.append(-gamma * g)
        else:
            reused += 1
            alphas[best] = alphas[best] - s * g * phi(x, W(best))
            betas[best] -= s * g
    return seen, reused


def by_mini_batches(X, Y, w, W, gamma, nu, derivative, size, blocks, curvature=None):
    """DSG with `blocks` new blocks a step, preconditioned where a curvature is given, with frequencies W(block).

    Returns the solutions after each step: lists of a coefficient matrix (2 F, K) for each block there is.
    """
    alphas, solutions = [], []
    for t, start in enumerate(range(0, len(X) - size + 1, size)):
        own = slice(start, start + size)
        for _ in range(blocks):
            f = sum((np.array([phi(x, W(i)) for x in X[own]]) @ a for i, a in enumerate(alphas)), 0.0)
            g = derivative(Y[own], f)
            Phi = np.array([phi(x, W(len(alphas))) for x in X[own]])
            G = Phi.T @ (w[own, None] * g) / size
            if curvature is not None:
                ridge = np.sum(w[own, None] * Phi**2) / w[own].sum() / size
                G = np.linalg.solve(curvature * (Phi.T @ (w[own, None] * Phi) / size + ridge * np.eye(len(G))), G)
            alphas = [(1 - gamma(t) * nu) * a for a in alphas] + [-gamma(t) * G]
        solutions.append(alphas)
    return solutions


def mean_solution(solutions):
    """A block that did not exist counts as 0."""
    n = len(solutions[-1])
    return [sum(alphas[k] for alphas in solutions if k < len(alphas)) / len(solutions) for k in range(n)]


def scores_of(alphas, X, W):
    return sum(np.array([phi(x, W(i)) for x in X]) @ a for i, a in enumerate(alphas))


def longest_step(beta, gbar, gamma, limit, variance):
    """The longest admissible step of one block for one output, or 0."""
    A = 2 * (gbar**2 + variance)
    b = beta * gbar
    D = 4 * b**2 - A * (beta**2 - gamma**2 * gbar**2)
    if D < 0:
        return 0.0
    lower, upper = (2 * b - math.sqrt(D)) / A, (2 * b + math.sqrt(D)) / A
    step = min(upper, limit)
    return step if step > gamma and lower <= limit else 0.0


def inequality_9(beta, gbar, gamma, step, variance):
    """Right and left side of (9), as printed, for K outputs."""
    left = 2 * np.sum((beta - step * gbar) ** 2) + 2 * step**2 * variance
    return np.sum(beta**2) + gamma**2 * np.sum(gbar**2), left


def context(**changed):
    """A step's circumstances for tests of one policy."""
    fields = {
        "t": 0,
        "gamma": 0.5,
        "n_blocks": 0,
        "full": False,
        "mean_gradient": np.zeros(1),
        "beta": np.zeros((0, 1)),
        "variance": 1e-3,
        "class_variance": 1e-3,
        "limit": lambda _block: math.inf,
        "seed": 1,
    }
    return GrowthContext(**{**fields, **changed})
