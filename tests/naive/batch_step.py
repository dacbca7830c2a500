"""A plain twin of the batch step: loops over rows, every coefficient apart, and a ridge regression solved by numpy."""

import math

import numpy as np

from streamkernel.growth import CDSG, UDSG
from tests.growth.naive import context, inequality_9


class Twin:
    """A growing machine that learns by batch steps.

    `features(block, x)` are those of a row and `gamma(t, n)` step sizes; the loss says what `tests.naive.batch_losses`
    has, with its curvature L and the bound M of its derivative, or None.
    `bounded` says whether the features have a bound.
    """

    def __init__(self, features, K, loss, L, M, growth, gamma, nu, preconditioned, blocks, most, **rest):
        self.features, self.K, self.loss, self.L, self.M = features, K, loss, L, M
        self.growth, self.gamma, self.nu = growth, gamma, nu
        self.preconditioned, self.blocks, self.most = preconditioned, blocks, most
        self.seed, self.F, self.kappa, self.noise, self.bounded, self.scheduled = (
            rest[name] for name in ("seed", "F", "kappa", "noise", "bounded", "scheduled")
        )
        self.alphas, self.betas, self.solutions = [], [], []
        self.t, self.largest, self.reused = 0, 0.0, 0

    def scores(self, rows, alphas=None):
        alphas = self.alphas if alphas is None else alphas
        out = []
        for x in rows:
            f = np.zeros(self.K)
            for k, alpha in enumerate(alphas):
                f = f + self.features(k, x) @ alpha
            out.append(f)
        return out

    @property
    def mean(self):
        """The mean of the solutions so far; a block that did not exist counts as 0."""
        return [
            sum(alphas[k] for alphas in self.solutions if k < len(alphas)) / len(self.solutions)
            for k in range(len(self.alphas))
        ]

    def step(self, rows, ys, w):
        n = len(rows)
        self.loss.observe(ys, self.scores(rows), w)
        for number in range(self.blocks):
            F = self.scores(rows)
            g = [np.array(self.loss.derivative(y, f), float) for y, f in zip(ys, F, strict=True)]
            weighted = [w_i * g_i for w_i, g_i in zip(w, g, strict=True)]
            gbar = sum(weighted) / n
            gamma = self.gamma(self.t, n)
            if self.M is None:
                self.largest = max(0.999 * self.largest, *(math.sqrt(v @ v) for v in weighted))
                M = self.largest
            else:
                M = self.M * max(1.0, *w)
            variance = M**2 / (self.noise * self.F * n)
            block, s, decay = self.choose(number, gamma, gbar, variance, rows, w)
            shrink = max(1 - decay * self.nu, -1)
            self.alphas = [shrink * alpha for alpha in self.alphas]
            self.betas = [shrink * beta for beta in self.betas]
            self.loss.take_slope(decay * self.kappa, F, w)
            if not any(v.any() for v in weighted):
                break
            Phi = [self.features(block, x) for x in rows]
            G = sum(np.outer(phi, v) for phi, v in zip(Phi, weighted, strict=True)) / n
            if self.preconditioned:
                G = self.solved(Phi, g, w)
            if block == len(self.alphas):
                self.alphas.append(np.zeros(G.shape))
                self.betas.append(np.zeros(self.K))
            else:
                self.reused += 1
            self.alphas[block] = self.alphas[block] - s * G
            self.betas[block] = self.betas[block] - s * gbar
        self.t += 1
        self.solutions.append(self.alphas)

    def solved(self, Phi, g, w):
        """(Phi^T W Phi + r I)^-1 Phi^T W g / L."""
        A, b, squares = 0.0, 0.0, 0.0
        for phi, g_i, w_i in zip(Phi, g, w, strict=True):
            A, b = A + w_i * np.outer(phi, phi), b + w_i * np.outer(phi, g_i)
            squares += w_i * (phi @ phi)
        return np.linalg.solve(A + squares / sum(w) * np.eye(len(A)), b) / self.L

    def choose(self, number, gamma, gbar, variance, rows, w):
        """The block, its step and the step by which coefficients decay."""
        n_blocks, t = len(self.alphas), self.t * self.blocks + number
        full = self.most is not None and (n_blocks + 1) * self.F > self.most
        picked = context(t=t, n_blocks=n_blocks, seed=self.seed).uniform_block()
        if isinstance(self.growth, CDSG) and n_blocks:
            block, s = self.checked(gamma, gbar, variance, rows, w, full)
        elif full or (
            isinstance(self.growth, UDSG)
            and n_blocks
            and t % (self.growth.grow + self.growth.reuse) >= self.growth.grow
        ):
            block, s = picked, gamma
        else:
            block, s = n_blocks, gamma
        if not (self.scheduled or (self.bounded and not self.preconditioned)):
            s = min(s, self.limit(block, rows, w))
        return block, s, s

    def checked(self, gamma, gbar, variance, rows, w, full):
        """CDSG: the old block that (9) and its features allow, and its step."""
        search = self.clearest if self.growth.cap == 1 else self.longest
        best, s = search(gamma, gbar, variance, rows, w)
        if best is not None:
            return best, s
        if full:
            return int(np.argmax([beta @ gbar for beta in self.betas])), gamma
        return len(self.alphas), gamma

    def clearest(self, gamma, gbar, variance, rows, w):
        """The block where (9) holds by most at gamma, of those whose features allow gamma."""
        best, most = None, 0.0
        for k, beta in enumerate(self.betas):
            right, left = inequality_9(beta, gbar, gamma, gamma, variance)
            if right - left > most and self.limit(k, rows, w) >= gamma:
                best, most = k, right - left
        return best, gamma

    def longest(self, gamma, gbar, variance, rows, w):
        """The block with the longest step that (9) and its features allow."""
        best, longest, A = None, gamma, 2 * (gbar @ gbar + variance)
        for k, beta in enumerate(self.betas):
            b = beta @ gbar
            D = 4 * b**2 - A * (beta @ beta - gamma**2 * (gbar @ gbar))
            if D < 0:
                continue
            lower, upper = (2 * b - math.sqrt(D)) / A, (2 * b + math.sqrt(D)) / A
            if upper > longest:  # features cost a pass
                limit = min(self.growth.cap * gamma, self.limit(k, rows, w))
                s = min(upper, limit)
                if lower <= limit and s > longest:
                    best, longest = k, s
        return best, longest

    def limit(self, block, rows, w):
        """The longest step that the features of a block allow."""
        if self.preconditioned:
            return 1.0
        if self.bounded and self.M is not None:
            return math.inf
        A = 0.0
        for x, w_i in zip(rows, w, strict=True):
            phi = self.features(block, x)
            A = A + w_i * np.outer(phi, phi) / len(rows)
        largest = power_iteration(A)
        return 1 / (self.L * largest) if largest else math.inf


def power_iteration(A):
    """The largest eigenvalue to a relative 1e-6, from the vector of equal numbers."""
    v, value = np.full(len(A), 1 / math.sqrt(len(A))), 0.0
    for _ in range(200):
        v = A @ v
        norm = math.sqrt(v @ v)
        if norm == 0 or abs(norm - value) <= 1e-6 * norm:
            return norm
        v, value = v / norm, norm
    return value
