"""Twin of streamkernel/compute/mixture_pass.py: no windows that turn, no products that are kept, in float64."""

import math

import numpy as np

from tests.naive.mixture_parts import any_known, learn_linear, loss_residuals, predict_linear
from tests.naive.projection import ridge_of

SHARES, RIDGES = (0.5, 0.3, 0.5, 1.0, 0.3), (0.3, 1.0, 3.0, 0.1, 0.1)
HALVINGS = (500.0, math.inf, 100.0, math.inf, math.inf)
SLOW, HEADS, BATCH, WINDOW = 3, 5, 4, 16


class NaiveMixture:
    """What a mixture knows; all features have room for all blocks, those to come are 0."""

    def __init__(self, kind, C, d, W, root, norm, F, most):
        self.kind, self.W, self.root, self.norm, self.F, self.most = kind, W, root, norm, F, most
        self.D = 1 + d + 2 * F * most
        self.A = np.zeros((HEADS, self.D, C))
        #: Of each output: those of its target, and outputs of classes share theirs.
        self.gains = np.ones((self.D, C))
        self.linear, self.squares = np.zeros((1 + d, C)), np.zeros((1 + d, C))
        self.losses = np.zeros((1 if kind == "classes" else C, HEADS + 1))
        self.seen, self.waiting = [], []
        self.beta = [np.zeros(C)]
        self.largest, self.margin = 0.0, math.nan
        self.n = 0


def pass_mixture(mixture, X, targets, weights):
    """The predictions of records, each made before it was learned."""
    out = []
    for x, target, weight in zip(X, targets, weights, strict=True):
        out.append((hedge(mixture.losses) * predict_heads(mixture, x).T).sum(axis=1))
        if weight > 0 and any_known(target):
            learn_record(mixture, x, target, weight)
    return np.array(out)


def hedge(losses):
    """Weights of each target, a row for each."""
    w = np.exp(-0.3 * (losses - losses.min(axis=1, keepdims=True)))
    return w / w.sum(axis=1, keepdims=True)


def fill_features(mixture, x):
    """[1/2, x / root, norm cos, norm sin of block after block], of frequencies in turns."""
    turns = 2 * math.pi * (x @ mixture.W[: len(x)])
    parts = [[0.5], np.clip(x / mixture.root, -1e6, 1e6)]
    for k in range(len(mixture.beta)):
        own = turns[k * mixture.F : (k + 1) * mixture.F]
        parts += [mixture.norm * np.cos(own), mixture.norm * np.sin(own)]
    own = np.concatenate(parts)
    return np.pad(own, (0, mixture.D - len(own)))


def predict_heads(mixture, x):
    """Scores of all heads and the linear expert; the fast heads know what they have learned since the last step."""
    phi = fill_features(mixture, x)
    f = [mixture.A[h].T @ phi for h in range(HEADS)]
    for other, moves in mixture.waiting:
        for h in range(SLOW, HEADS):
            f[h] = f[h] - other @ (mixture.gains * phi[:, None]) * moves[h - SLOW]
    return np.array([*f, predict_linear(mixture.linear, x)])


def learn_record(mixture, x, target, weight):
    phi, f = fill_features(mixture, x), predict_heads(mixture, x)
    found = [loss_residuals(mixture.kind, own, target) for own in f]
    losses = np.array([loss for _, loss in found]).T
    mixture.losses = np.where(np.isnan(losses), mixture.losses, 0.998 * mixture.losses + losses)
    own = phi @ (mixture.gains * phi[:, None])
    moves = [SHARES[h] / (own + ridge_of(own, RIDGES[h], weight)) * found[h][0] for h in range(SLOW, HEADS)]
    mixture.linear, mixture.squares = learn_linear(mixture.linear, mixture.squares, x, found[HEADS][0], weight)
    mixture.waiting.append((phi, moves))
    mixture.seen = [*mixture.seen, (phi, target, weight)][-WINDOW:]
    mixture.n += 1
    if mixture.n % BATCH == 0:
        take_mixture_step(mixture)


def take_mixture_step(mixture):
    Phi = np.array([phi for phi, _, _ in mixture.seen])
    grams = refresh_products(mixture, Phi)
    weights = np.array([weight for _, _, weight in mixture.seen])
    for h in range(SLOW):
        R = np.array([loss_residuals(mixture.kind, mixture.A[h].T @ phi, y)[0] for phi, y, _ in mixture.seen])
        share = SHARES[h] / (1 + (mixture.n - BATCH) / HALVINGS[h])
        if h == 0:
            gamma, slopes = share, (weights[:, None] * R)[-BATCH:]
        for c, gram in enumerate(grams):
            ridges = [ridge_of(own, RIDGES[h], w) for own, w in zip(np.diag(gram), weights, strict=True)]
            Z = np.linalg.solve(gram + np.diag(ridges), R[:, c])
            mixture.A[h][:, c] -= share * mixture.gains[:, c] * (Phi.T @ Z)
    for phi, moves in mixture.waiting:
        for h in range(SLOW, HEADS):
            mixture.A[h] -= mixture.gains * phi[:, None] * moves[h - SLOW]
    mixture.waiting = []
    if mixture.n % 64 == 0:
        mixture.gains = refresh_gains(mixture)
    grow_mixture(mixture, gamma, slopes)


def refresh_products(mixture, Phi):
    return [Phi * gains @ Phi.T for gains in mixture.gains.T]


def refresh_gains(mixture):
    """Gains: .1 for all, and .9 by the size of the falling head's coefficients: of an output, or of all classes."""
    F, n = mixture.F, len(mixture.beta)
    first = mixture.D - 2 * F * mixture.most
    squares = (mixture.A[0][first : first + 2 * F * n].reshape(n, 2, F, -1) ** 2).sum(axis=1)
    if mixture.kind == "classes":
        squares[:] = squares.sum(axis=2, keepdims=True)
    sizes = np.sqrt(squares)
    shares = np.repeat((sizes / sizes.mean(axis=(0, 1)))[:, None], 2, axis=1).reshape(2 * F * n, -1)
    gains = mixture.gains.copy()
    gains[first : first + len(shares)] = 0.1 + 0.9 * shares
    return gains


def grow_mixture(mixture, gamma, slopes):
    """Inequality (9) at the step gamma, of every block."""
    g, beta = slopes.mean(axis=0), mixture.beta
    mixture.largest = max(0.999 * mixture.largest, np.linalg.norm(slopes, axis=1).max())
    v = mixture.largest**2 / (4 * mixture.F * BATCH)
    margins = [b @ b + gamma**2 * (g @ g) - 2 * ((b - gamma * g) ** 2).sum() - 2 * gamma**2 * v for b in beta]
    mixture.beta = [b - gamma * g for b in beta]
    if max(margins) >= 0 or len(beta) == mixture.most:
        mixture.margin = max(margins)
    else:
        mixture.beta.append(-gamma * g)
