"""The slow plain twin of every jitted kernel in streamkernel/compute, written for reading: loops, Python numbers.

A twin has the name of its kernel and returns what the kernel fills in.
"""

import copy
import math
from fractions import Fraction

import numpy as np
from scipy.linalg import hadamard

WORD = 2**64
HALF_WORD = 2**32
GOLDEN = 0x9E3779B97F4A7C15


# gaussians.py ---------------------------------------------------------------------------------------------------------


def mix64(word):
    """splitmix64's finaliser."""
    word = (word ^ (word >> 30)) * 0xBF58476D1CE4E5B9 % WORD
    word = (word ^ (word >> 27)) * 0x94D049BB133111EB % WORD
    return word ^ (word >> 31)


def random_signs(word, n, m):
    return [[1 if mix64((word + c) % WORD) >> s & 1 else -1 for c in range(m)] for s in range(n)]


def feature_words(seed, first, n):
    base = mix64((seed + GOLDEN) % WORD)
    return [mix64((base + i * GOLDEN) % WORD) for i in range(first, first + n)]


def hash64(low, high):
    """The 64 mixed bits of two halves of a word: 48 to count, 16 to dither."""
    x = low * 0x9E3779B1 % HALF_WORD
    y = (high ^ x ^ (x >> 15)) * 0x85EBCA77 % HALF_WORD
    x ^= y ^ (y >> 13)
    return (x << 16) | (y >> 16), y % 2**16


def centred(count, dither):
    """A count of 48 bits and two bytes of dither, less their means, in units of 2^-8 of a bit."""
    return 256 * (count - 24) + dither // 256 + dither % 256 - 255


def counted(low, high):
    bits, dither = hash64(low, high)
    return centred(bits.bit_count(), dither)


def shaped(centred):
    """x (a + b x^2) of x in bits, in (-25, 25): one float32 rounding after each operation."""
    x = np.float32(centred / 256)
    return x * (np.float32(0.28518261886330426) + np.float32(4.1825692287907671e-05) * (x * x))


def normal(low, high):
    return shaped(counted(low, high))


def gaussians(words, keys, scale, dtype):
    out = np.empty((len(keys), len(words)), dtype)
    for j, key in enumerate(keys):
        for i, word in enumerate(words):
            both = word ^ key
            out[j, i] = out.dtype.type(normal(both % HALF_WORD, both >> 32)) * out.dtype.type(scale)
    return out


# features.py ----------------------------------------------------------------------------------------------------------


def cos_sin(turns):
    """Of 2 pi turns, each reduced to one period without an error first."""
    reduced = [math.remainder(float(t), 1.0) for t in turns]
    return [math.cos(2 * math.pi * r) for r in reduced], [math.sin(2 * math.pi * r) for r in reduced]


def _observed(x):
    return [j for j, value in enumerate(x) if value != 0]


def _project(x, columns, W, first, m):
    return [math.fsum(float(x[j]) * float(W[j, first + i]) for j in columns) for i in range(m)]


def _project_some(X, W, first, m):
    return np.array([_project(x, _observed(x), W, first, m) for x in X])


def _dot(a, b):
    return math.fsum(float(p) * float(q) for p, q in zip(a, b, strict=True))


def _dot_pairs(cosines, sines, a, b):
    return _dot(cosines, a) + _dot(sines, b)


def add_tile(turns, alpha, first, scores):
    cosines, sines = cos_sin(turns)
    own = slice(first, first + len(turns))
    return [score + _dot_pairs(cosines, sines, *alpha[o, :, own]) for o, score in enumerate(scores)]


def add_projected(turns, alpha, first, scores):
    return np.array([add_tile(own, alpha, first, row) for own, row in zip(turns, scores, strict=True)])


def add_scores(X, W, alpha, first, n_features, scores):
    """At once: tiles are for speed."""
    return add_projected(_project_some(X, W, 0, n_features), alpha, first, scores)


def paired_features(X, W, first, F):
    rows = []
    for x in X:
        cosines, sines = cos_sin(_project(x, range(len(x)), W, first, F))
        rows.append([value / math.sqrt(F) for value in [*cosines, *sines]])
    return np.array(rows)


def adaptive_columns(X, W, scales, root, n_linear):
    features = paired_features(X * scales, W, 0, W.shape[1])
    return np.concatenate([features, np.ones((len(X), 1)), np.clip(X[:, :n_linear] / root, -1e6, 1e6)], axis=1)


def column_means(g):
    return [math.fsum(column) / len(g) for column in np.transpose(g)]


def mean_outer(phi, g):
    out = np.zeros((g.shape[1], phi.shape[1]))
    for features, gradient in zip(phi, g, strict=True):
        out += np.outer(gradient, features) / len(phi)
    return out


def largest_eigenvalue(A):
    return np.linalg.eigvalsh(A)[-1]


# structured.py --------------------------------------------------------------------------------------------------------

#: The deviation of `counted`: of 48 bits, of two bytes.
COUNTED_DEVIATION = math.sqrt(48 / 4 * 256**2 + 2 * (256**2 - 1) / 12)


def _stack_word(seed, group, tile):
    base = mix64((seed + GOLDEN) % WORD)
    return mix64((mix64((base + (group + 1) * GOLDEN) % WORD) + tile * GOLDEN) % WORD)


def _draw_signs(word, n):
    return [mix64((word + i * GOLDEN) % WORD) % HALF_WORD for i in range(n)]


def _draw_norms(word, n, scale, m):
    """Three terms of a power, in float32, one rounding after each operation."""
    s = math.sqrt(2 / (9 * n))
    root, whole = math.sqrt(1 - s * s), math.sqrt(n) * scale
    a0 = np.float32(whole * root * root * root)
    a1 = np.float32(whole * 1.5 * root * s / COUNTED_DEVIATION)
    a2 = np.float32(whole * 0.375 / root * (s / COUNTED_DEVIATION) ** 2)
    rows = [(i + 1) * 0x9E3779B1 % HALF_WORD for i in range(m)]
    z = np.array([counted(word % HALF_WORD ^ row, word >> 32) for row in rows], np.float32)
    return a0 + z * (a1 + z * a2)


def _transform(data, words, n):
    """By the matrices themselves; the first sign of a word is its highest bit."""
    stacks = np.reshape(data, (n, 16)).astype(np.float64)
    words = np.reshape(words, (3, -1, 16))
    bits = [[[word >> (31 - i % 32) & 1 for word in turn[i // 32].tolist()] for i in range(n)] for turn in words]
    for signs in 1 - 2 * np.array(bits):
        stacks = hadamard(n) @ (signs * stacks)
    return stacks.ravel()


def _add_group(x, start, words, norms, n, turns, first):
    own = np.zeros(n)
    own[: len(x[start : start + n])] = x[start : start + n]
    turns = np.array(turns, np.float64)
    turns[first : first + 16 * n] += norms * _transform(np.repeat(own, 16), words, n)
    return turns


def draw_norms(groups, seed, scale, first, m):
    return [
        np.concatenate(
            [
                _draw_norms(mix64(_stack_word(seed, g, tile)), n, scale / n**1.5, 16 * n)
                for tile in range(first // (16 * n), (first + m) // (16 * n))
            ]
        )
        for g, n in enumerate(groups.sizes.tolist())
    ]


def add_turns(X, groups, seed, scale, first, turns):
    """Of whole widths: what there is after the last feature does no harm."""
    width = turns.shape[1]
    norms = draw_norms(groups, seed, scale, first, width)
    for g, (start, n) in enumerate(zip(*map(np.ndarray.tolist, groups), strict=True)):
        for at in range(0, width, 16 * n):
            words = _draw_signs(_stack_word(seed, g, (first + at) // (16 * n)), 3 * max(n // 32, 1) * 16)
            own = norms[g][at : at + 16 * n]
            turns = np.array([_add_group(x, start, words, own, n, t, at) for x, t in zip(X, turns, strict=True)])
    return turns


def structured_scores(X, groups, seed, scale, alpha, n_features, scores):
    """All features at once."""
    largest = 16 * int(groups.sizes.max())
    turns = add_turns(X, groups, seed, scale, 0, np.zeros((len(X), -(-n_features // largest) * largest)))
    return add_projected(turns[:, :n_features], alpha, 0, scores)


def structured_features(X, groups, seed, scale, first, F):
    largest = 16 * int(groups.sizes.max())
    turns = add_turns(X, groups, seed, scale, 0, np.zeros((len(X), -(-(first + F) // largest) * largest)))
    rows = [cos_sin(own) for own in turns[:, first : first + F]]
    return np.array(rows).reshape(len(X), 2 * F) / math.sqrt(F)


# moments.py -----------------------------------------------------------------------------------------------------------


#: Of inputs and of targets: deviations past which values are far, as how many they count, how much narrower blocks are.
INPUTS, TARGETS = (5, 3, 3), (100, 6, 40)


class Moments:
    """The values of one input or target as they counted: of all, and of the block; and the run of far ones."""

    def __init__(self, guard=INPUTS):
        self.far, self.counts_as, self.narrower = guard
        self.counted, self.block = [], []
        self.run = self.seen = 0

    def __len__(self):
        return len(self.counted)

    @property
    def mean(self):
        return np.mean(self.counted) if self.counted else 0.0

    @property
    def deviation(self):
        return deviation(self.counted)

    @property
    def bounded(self):
        return are_outliers(self.run, len(self))

    @property
    def numbers(self):
        """As the kernels hold them."""
        mean, block = self.mean, np.mean(self.block) if self.block else 0.0
        squares, of_block = (np.sum((np.array(v) - m) ** 2) for v, m in ((self.counted, mean), (self.block, block)))
        return [len(self), mean, squares, self.run, self.seen, len(self.block), block, of_block]


def deviation(values):
    return np.std(values) if len(values) else 0.0


def is_far(values, value, far):
    return abs(value - np.mean(values)) > far * np.std(values) and np.std(values) > 1e-12 * abs(np.mean(values))


def drawn_to(values, value, counts_as):
    """As what a far value counts among others."""
    return np.mean(values) + math.copysign(counts_as * np.std(values), value - np.mean(values))


def are_outliers(run, count):
    return run < max(64, count / 100)


def updated(moments, value):
    """The values as they would count with one more, and whether it is far."""
    far = len(moments) >= 32 and is_far(moments.counted, value, moments.far)
    outlier = far and moments.bounded
    return [*moments.counted, drawn_to(moments.counted, value, moments.counts_as) if outlier else value], far


def keep(moments, value):
    """Whether the block took the place of all; the moments learn the value."""
    bounded = moments.bounded
    moments.counted, far = updated(moments, value)
    moments.run, moments.seen = moments.run + 1 if far else max(moments.run - 0.25, 0), moments.seen + 1
    if far and not bounded:
        forget_block(moments)
        return False
    place = moments.seen + 3
    if place <= 700 or place % 16 == 0:
        take_into_block(moments, value)
    return place in [11 * 2**k for k in range(40)] and end_block(moments)


def forget_block(moments):
    moments.block = []


def take_into_block(moments, value):
    far = len(moments.block) >= 3 and is_far(moments.block, value, moments.far)
    moments.block.append(drawn_to(moments.block, value, moments.counts_as) if far else value)


def end_block(moments):
    replaced = len(moments.block) >= 8 and 0 < moments.narrower * np.std(moments.block) < moments.deviation
    if replaced:
        moments.counted = moments.block
    forget_block(moments)
    return replaced


def drawn_in(standardised, bounded):
    far = abs(standardised)
    return math.copysign(100 * (100 / far) ** 2 if bounded and far > 100 else min(far, 100), standardised)


def near(moments, value):
    if len(moments) < 32 or moments.deviation <= 1e-12 * abs(moments.mean):
        return value
    standardised = drawn_in((value - moments.mean) / moments.deviation, moments.bounded)
    return moments.mean + moments.deviation * standardised


def scale_rows(raw, learn, is_number, limit, before=None):
    """Rows scaled by the mean and deviation of all that counted and was learnt up to each, itself included.

    `before` holds what every column had learnt earlier. Returns the rows and what every column has learnt now.
    """
    learnt = copy.deepcopy(before or [Moments() for _ in is_number])
    out = np.zeros(raw.shape)
    for r, row in enumerate(raw):
        for j, value in enumerate(row):
            if math.isnan(value):
                continue
            value = min(max(value, -1e100), 1e100)
            if not is_number[j]:
                out[r, j] = value
                continue
            sample, _ = updated(learnt[j], value)
            deviation = np.std(sample)
            out[r, j] = 0.0 if deviation == 0 else np.clip((value - np.mean(sample)) / deviation, -limit, limit)
            if learn[r]:
                keep(learnt[j], value)
    return out, learnt


def clip_rows(raw, limit):
    return np.array([[0.0 if math.isnan(v) else min(max(v, -limit), limit) for v in row] for row in raw])


def scale(values, learnt, standardize, limit, is_number, before=None):
    """Rows, and what every column has observed now."""
    if standardize:
        return scale_rows(values, learnt, is_number, limit, before)
    return clip_rows(values, limit), before


def take_target(moments, y):
    """A target among all up to it, and whether the block took their place; the moments learn it."""
    bounded, (sample, _) = moments.bounded, updated(moments, y)
    standardised = (y - np.mean(sample)) / (np.std(sample) or 1.0)
    return drawn_in(standardised, bounded and len(sample) > 32), keep(moments, y)


def standardise(y, moments):
    """Each number among all up to it, and the mean and deviation before each; the moments learn them."""
    out, before = [], []
    for value in y:
        before.append((moments.mean, moments.deviation))
        out.append(math.nan if math.isnan(value) else take_target(moments, value)[0])
    return out, before


# softmax.py -----------------------------------------------------------------------------------------------------------


def softmax_into(scores, temperature):
    exponents = temperature * np.array(scores)
    powers = np.exp(exponents - exponents.max())
    return powers / powers.sum()


def softmax_rows(scores):
    return np.array([softmax_into(row, 1.0) for row in scores])


# check.py -------------------------------------------------------------------------------------------------------------


def margin(beta2, b, gbar2, gamma, variance, step):
    """The right side of (9) less its left, without a rounding: |beta - s gbar|^2 is |beta|^2 - 2 s b + s^2 |gbar|^2."""
    beta2, b, gbar2, gamma, variance, step = map(Fraction, (beta2, b, gbar2, gamma, variance, step))
    return beta2 + gamma**2 * gbar2 - 2 * (beta2 - 2 * step * b + step**2 * gbar2) - 2 * step**2 * variance


def roots(beta2, b, gbar2, gamma, variance):
    """The steps between which (9) holds: sought by halves from where it holds by most, in either direction."""
    if gbar2 + variance == 0:
        return math.inf, -math.inf  # nothing pulls: there is no step to make

    def holds(step):
        return margin(beta2, b, gbar2, gamma, variance, step) >= 0

    peak = Fraction(b) / (Fraction(gbar2) + Fraction(variance))  # there the margin, a parabola in s, is level
    if not holds(peak):
        return math.inf, -math.inf
    found = []
    for direction in (-1, 1):
        inside, outside = Fraction(0), Fraction(1)
        while holds(peak + direction * outside):
            inside, outside = outside, 2 * outside
        for _ in range(70):
            middle = (inside + outside) / 2
            inside, outside = (middle, outside) if holds(peak + direction * middle) else (inside, middle)
        found.append(float(peak + direction * inside))
    return tuple(found)


def admissible_step(lower, upper, gamma, limit):
    """Of an interval's steps up to the limit, the longest is one of these two."""
    return max((step for step in (upper, limit) if lower <= step <= upper and gamma < step <= limit), default=0.0)


def check_blocks(beta, gbar, gamma, variance, limit):
    """|gbar|^2, and of every block |beta|^2, <beta, gbar> and the longest step."""
    gbar2, blocks = _dot(gbar, gbar), []
    for own in beta:
        beta2, b = _dot(own, own), _dot(own, gbar)
        blocks.append((beta2, b, admissible_step(*roots(beta2, b, gbar2, gamma, variance), gamma, limit)))
    return gbar2, blocks


def check_classes(beta, gbar, gamma, variance, limit):
    """Every class is all there is."""
    steps = np.zeros(beta.shape)
    for o in range(len(gbar)):
        _, blocks = check_blocks(beta[:, o : o + 1], gbar[o : o + 1], gamma, variance, limit)
        steps[:, o] = [step for _, _, step in blocks]
    return steps


# recursive.py ---------------------------------------------------------------------------------------------------------


def _subtract(row, factor, v):
    return [row[j] - factor * v[j] for j in range(len(row))]


def dot(a, b):
    return _dot(a, b)


def symmetric(P):
    """The whole of a matrix of which the lower triangle counts."""
    return np.tril(P) + np.tril(P, -1).T


def symmetric_product(P, owed, largest, x):
    """Two steps of what the kernel does in one pass."""
    P = symmetric(P) if owed is None else settle(P, owed, largest)
    return P, P @ x


def settle(P, owed, largest):
    *u, gain, drift = owed
    P = downdate(P, u, gain, 1)
    P[np.diag_indices_from(P)] = np.minimum(np.diag(P) + drift, largest)
    return P


def downdate(P, v, factor, scale):
    return scale * (symmetric(P) - factor * np.outer(v, v))


def _absorb(W, phi, errors, weight, v):
    gain = 1 / (1 / weight + _dot(phi, v))
    return W + gain * np.outer(errors, v), gain


def learn_least_squares(P, W, phi, errors, weight, drift, largest):
    """By the matrix whose inverse P is, to which a record adds its outer product."""
    P = np.linalg.inv(np.linalg.inv(symmetric(P)) + weight * np.outer(phi, phi))
    W = W + weight * np.outer(errors, P @ phi)
    P[np.diag_indices_from(P)] = np.minimum(np.diag(P) + drift, largest)
    return P, W


def learn_least_squares_late(P, W, owed, phi, errors, weight, drift, largest):
    """Nothing is late: P takes what it is owed, and the record at once."""
    return learn_least_squares(settle(P, owed, largest), W, phi, errors, weight, drift, largest)


def learn_newton(P, W, phi, p, label, weight, forgetting, rho):
    """By the curvature, the inverse of P, which forgets before a record adds its own."""
    p = np.array(p)
    h = max(np.mean(p * (1 - p)), 0.02) * weight
    P = np.linalg.inv(forgetting * np.linalg.inv(symmetric(P)) + h * np.outer(phi, phi))
    W = W - weight * np.outer(p - np.eye(len(p))[label], P @ phi)
    if forgetting < 1:
        P = P * min(1, len(phi) / rho / np.trace(P))
    return P, W


# experts.py -----------------------------------------------------------------------------------------------------------


def speak(heads_W, linear_W, phi):
    scores = [[_dot(w, phi) for w in W] for W in heads_W]
    return scores + [[_dot(w, phi[len(phi) - len(w) :]) for w in W] for W in linear_W]


def hedge_weights(losses, eta):
    return softmax_into(losses, -eta)


def step_temperature(log_temperature, scores, p, label):
    slope = math.exp(log_temperature) * (np.dot(p, scores) - scores[label])
    return float(np.clip(log_temperature - 0.05 * np.clip(slope, -2, 2), 0, 4))


def count_loss(block, loss):
    return np.add(block, [1, loss, loss**2])


def teach_heads(P, W, owed, drifts, ridge, phi, truth, scores, weight):
    """The heads' matrices and coefficients after the record; nothing is owed then."""
    taught = [
        learn_least_squares_late(P[j], W[j], owed[j], phi, truth - scores[j], weight, drifts[j], 1 / ridge)
        for j in range(len(W))
    ]
    return [P for P, _ in taught], [W for _, W in taught], np.zeros_like(owed)


def rehearse(Phi, truths, sample_weights, P, W, owed, drifts, ridge):
    for phi, truth, weight in zip(Phi, truths, sample_weights, strict=True):
        if weight > 0:
            P, W, owed = teach_heads(P, W, owed, drifts, ridge, phi, truth, np.array(speak(W, [], phi)), weight)
    return P, W, owed


def standardise_targets(targets, sample_weights, moments):
    """Each target as those up to it standardise it; the moments learn them."""
    return [take_target(moments, y)[0] if weight > 0 else 0 for y, weight in zip(targets, sample_weights, strict=True)]


class Ensemble:
    """Trees, and what `learn_trees` is to know of them."""

    def __init__(self, n_trees, size, n_outputs):
        self.trees, self.window = [], []
        self.n_trees, self.size, self.n_outputs = n_trees, size, n_outputs
        self.since = self.grown = 0

    def forget(self):
        self.trees[:], self.window[:] = [], []
        self.since = self.grown = 0

    def speak(self, x):
        return speak_trees(self.trees, x, self.n_outputs)

    def learn(self, x, target, weight):
        self.since, self.grown = learn_trees(
            self.trees, self.window, x, target, weight, self.size, self.n_trees, self.since, self.grown
        )


# label_pass.py --------------------------------------------------------------------------------------------------------


def mix(weights, p, n):
    return sum(weights[j] * np.array(p[j]) for j in range(n))


def shift(p, by, least):
    moved = [max(a + b, least) for a, b in zip(p, by, strict=True)]
    return np.array(moved) / sum(moved)


def pass_labels(
    Phi,
    values,
    labels,
    sample_weights,
    heads_P,
    heads_W,
    owed,
    drifts,
    ridge,
    linear_P,
    linear_W,
    forgetting,
    ensembles,
    log_temperatures,
    losses,
    block,
    eta,
):
    """`ensembles` is empty, or of the classes and of what is left over; they learn in place."""
    linear_P, linear_W, temperatures, losses, out = list(linear_P), list(linear_W), log_temperatures, losses, []
    H, E, K = len(heads_W), len(linear_W), len(heads_W[0])
    for phi, x, label, weight in zip(Phi, values, labels, sample_weights, strict=True):
        linear = phi[len(phi) - linear_W[0].shape[1] :] if E else None
        scores = np.array(speak(heads_W, linear_W, phi))
        p = [softmax_into(score, math.exp(t)) for score, t in zip(scores[:H], temperatures, strict=True)]
        p += [softmax_into(score, 1) for score in scores[H:]]
        smooth = mix(hedge_weights(losses[: H + E], eta), p, H + E)
        if ensembles:
            classes, left_over = (ensemble.speak(x) for ensemble in ensembles)
            p.append(shift(np.maximum(classes, 0), np.full(K, 0.02 / K), 0))
            p.append(shift(smooth, left_over, 0.002 / K))
        out.append(mix(hedge_weights(losses, eta), p, len(p)))
        if label < 0:
            continue
        block = count_loss(block, min(-math.log(out[-1][label]), 10))
        truth = np.eye(K)[label]
        heads_P, heads_W, owed = teach_heads(heads_P, heads_W, owed, drifts, ridge, phi, truth - 1 / K, scores, weight)
        losses = 0.99 * np.array(losses) - np.log([0.999 * distribution[label] + 0.001 / K for distribution in p])
        temperatures = [step_temperature(temperatures[j], scores[j], p[j], label) for j in range(H)]
        for e in range(E):
            linear_P[e], linear_W[e] = learn_newton(
                linear_P[e], linear_W[e], linear, p[H + e], label, weight, forgetting[e], ridge
            )
        for ensemble, target in zip(ensembles, (truth, truth - smooth), strict=False):
            ensemble.learn(x, target, weight)
    return heads_P, heads_W, owed, linear_P, linear_W, temperatures, losses, block, out


def advance_labels(values, extras, labels, sample_weights, scaling, lens, window, *experts):
    """The parts of the kernel one after the other, each for all records."""
    labels = np.array(labels)
    Phi, observed = arrive(values, extras, labels, sample_weights, labels >= 0, scaling, lens, window)
    taught = np.where(np.array(sample_weights) > 0, labels, -1)
    return observed, pass_labels(Phi, values, taught, sample_weights, *experts)


# number_pass.py -------------------------------------------------------------------------------------------------------


def pass_numbers(
    Phi,
    values,
    targets,
    sample_weights,
    heads_P,
    heads_W,
    owed,
    drifts,
    ridge,
    linear_P,
    linear_W,
    linear_drifts,
    ensembles,
    levels,
    moments,
    linear_moments,
    losses,
    squared_errors,
    block,
    eta,
):
    """`ensembles` is empty, or of what is left over, which learns in place."""
    assert not np.any(moments)
    assert not np.any(linear_moments)
    moments, linear_moments = Moments(TARGETS), Moments(TARGETS)
    linear_P, linear_W, levels, out = list(linear_P), list(linear_W), np.array(levels), []
    H, E = len(heads_W), len(linear_W)
    for phi, x, y, weight in zip(Phi, values, targets, sample_weights, strict=True):
        linear = phi[len(phi) - linear_W[0].shape[1] :] if E else None
        scores = np.array(speak(heads_W, linear_W, phi))
        predictions = [moments.mean + moments.deviation * score[0] for score in scores[:H]]
        predictions += [linear_moments.mean + linear_moments.deviation * score[0] for score in scores[H:]]
        smooth = np.dot(hedge_weights(losses[: H + E], eta), predictions)
        corrected = np.array([smooth] + [smooth + ensemble.speak(x)[0] for ensemble in ensembles])
        predictions += [*corrected[1:], *(corrected + levels)]
        mixed = np.dot(hedge_weights(losses, eta), predictions)
        total, number = squared_errors
        variance = linear_moments.deviation**2 or 1
        out.append([mixed, math.sqrt(total / number) if number else 0, variance])
        if math.isnan(y):
            continue
        block = count_loss(block, min((y - mixed) ** 2 / variance, 4))
        nearer = near(linear_moments, y)
        squared_errors = 0.99 * np.array(squared_errors) + [(nearer - mixed) ** 2, 1]
        squared = np.minimum((y - np.array(predictions)) ** 2 / variance, 4)
        losses = 0.99 * np.array(losses) + 0.4 * squared / (np.mean(squared) + 0.05)
        if len(linear_moments):
            levels = 0.4**weight * levels + (1 - 0.4**weight) * (nearer - corrected)
            for ensemble in ensembles:
                ensemble.learn(x, np.array([nearer - smooth]), weight)
        standardised, is_new = take_target(linear_moments, y)
        if is_new:
            levels, squared_errors = np.zeros_like(levels), np.zeros(2)
            for ensemble in ensembles:
                ensemble.forget()
        for e in range(E):
            linear_P[e], linear_W[e] = learn_least_squares(
                linear_P[e], linear_W[e], linear, standardised - scores[H + e], weight, linear_drifts[e], 1 / ridge
            )
        standardised, _ = take_target(moments, nearer)
        heads_P, heads_W, owed = teach_heads(
            heads_P, heads_W, owed, drifts, ridge, phi, np.array([standardised]), scores, weight
        )
    return (
        heads_P,
        heads_W,
        owed,
        linear_P,
        linear_W,
        levels,
        moments.numbers,
        linear_moments.numbers,
        losses,
        squared_errors,
        block,
        out,
    )


def advance_numbers(values, extras, targets, sample_weights, scaling, lens, window, *experts):
    """The parts of the kernel one after the other, each for all records."""
    targets = np.array(targets)
    Phi, observed = arrive(values, extras, targets, sample_weights, ~np.isnan(targets), scaling, lens, window)
    taught = np.where(np.array(sample_weights) > 0, targets, math.nan)
    return observed, pass_numbers(Phi, values, taught, sample_weights, *experts)


# slopes.py ------------------------------------------------------------------------------------------------------------


def slopes(phi, coefficients, W, scales, root, n_linear):
    """Of the cosines and sines by the chain rule, and of the inputs that are columns."""
    d, F = W.shape
    out = []
    for j in range(d):
        slope = 0.0
        for i in range(F):
            turning = 2 * math.pi * scales[j] * W[j, i]
            slope += turning * (coefficients[F + i] * phi[i] - coefficients[i] * phi[F + i])
        out.append(slope + (coefficients[2 * F + 1 + j] / root if j < n_linear else 0))
    return out


def squared_slopes(Phi, coefficients, W, scales, root, n_linear):
    return sum(np.square(slopes(phi, c, W, scales, root, n_linear)) for phi in Phi for c in coefficients)


# arrival.py -----------------------------------------------------------------------------------------------------------


def remember(window, x, target, weight):
    """`window` is a list of all that came, of which the last count."""
    window.append((x, target, weight))


def arrive(values, extras, targets, weights, learnt, scaling, lens, window):
    """Columns of all rows, and what every input has observed by now; `window` takes the rows learnt.

    `scaling` is whether to standardize, the limit, which inputs are numbers, and what each had observed before.
    """
    standardize, limit, is_number, observed = scaling
    scaled, observed = scale(values, learnt, standardize, limit, is_number, observed)
    for r in np.flatnonzero(learnt):
        remember(window, scaled[r], targets[r], weights[r])
    W, scales, root, n_linear = lens
    return adaptive_columns(np.concatenate([scaled, extras], axis=1), W, scales, root, n_linear), observed


# trees.py -------------------------------------------------------------------------------------------------------------


def sort(values):
    """In place."""
    values[:] = sorted(values)


def bin_column(x):
    """Codes and cuts."""
    observed = [value for value in x if not math.isnan(value)]
    cuts = []
    if observed and min(observed) < max(observed):
        step = max(1, len(x) // 256)
        sample = sorted([value for value in x[::step] if not math.isnan(value)] + [min(observed), max(observed)])
        for b in range(1, 31):
            below = sample[b * len(sample) // 31]
            if below < sample[-1]:
                above = min(value for value in sample if value > below)
                cuts.append(below + 0.5 * (above - below))
        cuts = sorted(set(cuts))
    if observed and len(observed) < len(x):
        cuts.append(math.inf)
    return [len(cuts) if math.isnan(value) else sum(value > cut for cut in cuts) for value in x], cuts


def explains_more(gain, other, base):
    return gain > other + 1e-9 * (other + base)


def explained(sums):
    return sum(total**2 for total in sums[:-1]) / sums[-1]


def best_cut(codes, rows, R):
    """The gain and the last interval below."""
    gain, cut = 0, -1
    base = explained(R[rows].sum(axis=0))
    for b in sorted({int(codes[i]) for i in rows})[:-1]:
        sides = [[i for i in rows if codes[i] <= b], [i for i in rows if codes[i] > b]]
        if min(map(len, sides)) >= 3:
            more = sum(explained(R[side].sum(axis=0)) for side in sides) - base
            if explains_more(more, gain, base):
                gain, cut = more, b
    return gain, cut


def partition(codes, cut, rows):
    return [i for i in rows if codes[i] <= cut], [i for i in rows if codes[i] > cut]


def watched(targets, weights, word):
    weights = np.reshape(weights, (-1, 1))
    K = len(targets[0])
    if K == 2:
        targets = np.asarray(targets)[:, :1]
    if K > 8:
        targets = targets @ np.transpose(random_signs(word, 8, K))
    return np.hstack([targets * weights, weights])


def grow(codes, cuts, targets, weights, word, most):
    """The nodes of a tree in their order: (feature, threshold, first child, values, weight)."""
    d, n = codes.shape
    R = watched(targets, weights, word)
    nodes = [{"rows": list(range(n)), "depth": 0, "parent": None, "split": None}]
    order = list(range(d))
    for number, node in enumerate(nodes):  # which grows on the way
        rows = node["rows"]
        if len(rows) < 6 or node["depth"] >= 10 or len(nodes) + 2 > most:
            continue
        best = (0, None, None)
        for t in range(min(d, 32)):
            if d > 32:
                drawn = t + mix64((word + (number << 16) + t) % WORD) % (d - t)
                order[t], order[drawn] = order[drawn], order[t]
            gain, cut = best_cut(codes[order[t]], rows, R)
            if explains_more(gain, best[0], explained(R[rows].sum(axis=0))):
                best = (gain, order[t], cut)
        _, feature, cut = best
        if feature is not None:
            node["split"] = (feature, cuts[feature][cut], len(nodes))
            sides = partition(codes[feature], cut, rows)
            nodes.extend({"rows": side, "depth": node["depth"] + 1, "parent": node, "split": None} for side in sides)
    tree = []
    for node in nodes:
        rows = node["rows"]
        weight = sum(weights[i] for i in rows)
        parent = node["parent"]["values"] if node["parent"] else 0
        node["values"] = (sum(weights[i] * targets[i] for i in rows) + parent) / (weight + 1)
        feature, threshold, child = node["split"] or (-1, None, None)
        tree.append((feature, threshold, child, node["values"], weight))
    return tree


def leaf_of(x, tree):
    node = 0
    while tree[node][0] >= 0:
        feature, threshold, child = tree[node][:3]
        node = child if x[feature] <= threshold else child + 1
    return node


def follow(values, node_weight, target, weight):
    node_weight += weight
    rate = min(max(weight / (node_weight + 1), 0.02 * weight), 1)
    return values + rate * (target - values), node_weight


def speak_trees(trees, x, n_outputs):
    """The mean of the leaves of an ensemble."""
    return np.mean([tree[leaf_of(x, tree)][3] for tree in trees], axis=0) if trees else np.zeros(n_outputs)


def learn_trees(trees, window, x, target, weight, size, n_trees, since, grown):
    """The trees of an ensemble, after a record; `window` holds the records that came, of which the last count."""
    for tree in trees:
        leaf = leaf_of(x, tree)
        values, node_weight = follow(tree[leaf][3], tree[leaf][4], target, weight)
        tree[leaf] = (*tree[leaf][:3], values, node_weight)
    window.append((x, target, weight))
    n = min(len(window), size)
    if n >= 30 and since + 1 >= max(10, n // n_trees):
        # In the places of a ring, as the order of sums is theirs.
        last = sorted(range(len(window) - n, len(window)), key=lambda i: i % size)
        tree = grow_oldest([window[i] for i in last], grown)
        trees[grown % n_trees : grown % n_trees + 1] = [tree]
        return 0, grown + 1
    return since + 1, grown


def grow_oldest(records, grown):
    X, targets, weights = (np.array(part) for part in zip(*records, strict=True))
    codes, cuts = zip(*(bin_column(column) for column in X.T), strict=True)
    return grow(np.array(codes), cuts, targets, weights, mix64(grown), 511)
