"""The slow plain twin of every jitted kernel in streamkernel/compute, written for reading: loops, Python numbers.

A twin has the name of its kernel and returns what the kernel fills in.
"""

import math

import numpy as np

WORD = 2**64
HALF_WORD = 2**32
GOLDEN = 0x9E3779B97F4A7C15


# gaussians.py ---------------------------------------------------------------------------------------------------------


def mix64(word):
    """splitmix64's finaliser."""
    word = (word ^ (word >> 30)) * 0xBF58476D1CE4E5B9 % WORD
    word = (word ^ (word >> 27)) * 0x94D049BB133111EB % WORD
    return word ^ (word >> 31)


def feature_words(seed, first, n):
    base = mix64((seed + GOLDEN) % WORD)
    return [mix64((base + i * GOLDEN) % WORD) for i in range(first, first + n)]


def hash64(word, key):
    """The 64 mixed bits of a feature and an input: 48 to count, 16 to dither."""
    low, high = (word ^ key) % HALF_WORD, (word ^ key) >> 32
    x = low * 0x9E3779B1 % HALF_WORD
    y = (high ^ x ^ (x >> 15)) * 0x85EBCA77 % HALF_WORD
    x ^= y ^ (y >> 13)
    return (x << 16) | (y >> 16), y % 2**16


def shaped(count, dither):
    """x (a + b x^2) of x = count - 24 + two bytes of dither in (-1, 1): one float32 rounding after each operation."""
    x = np.float32(count - 24 + (dither // 256 + dither % 256 - 255) / 256)
    return x * (np.float32(0.28518261886330426) + np.float32(4.1825692287907671e-05) * (x * x))


def gaussians(words, keys, scale, dtype):
    out = np.empty((len(keys), len(words)), dtype)
    for j, key in enumerate(keys):
        for i, word in enumerate(words):
            counted, dither = hash64(word, key)
            out[j, i] = float(shaped(counted.bit_count(), dither)) * scale
    return out


# features.py ----------------------------------------------------------------------------------------------------------


def _cos_sin(turns):
    """Of 2 pi turns, each reduced to one period without an error first."""
    reduced = [math.remainder(float(t), 1.0) for t in turns]
    return [math.cos(2 * math.pi * r) for r in reduced], [math.sin(2 * math.pi * r) for r in reduced]


def _project(x, W, first, m):
    return [sum(float(x[j]) * float(W[j, first + i]) for j in range(len(x))) for i in range(m)]


def _dot(a, b):
    return math.fsum(float(p) * float(q) for p, q in zip(a, b, strict=True))


def add_scores(X, W, alpha, scores):
    n_blocks, n_outputs, width = alpha.shape
    F = width // 2
    scores = scores.copy()
    for r in range(len(X)):
        for k in range(n_blocks):
            cosines, sines = _cos_sin(_project(X[r], W, k * F, F))
            for o in range(n_outputs):
                scores[r, o] += _dot([*cosines, *sines], alpha[k, o])
    return scores


def paired_features(X, W, first, F):
    rows = []
    for x in X:
        cosines, sines = _cos_sin(_project(x, W, first, F))
        rows.append([value / math.sqrt(F) for value in [*cosines, *sines]])
    return np.array(rows)


def adaptive_columns(X, W, scales, root, n_linear):
    features = paired_features(X * scales, W, 0, W.shape[1])
    return np.concatenate([features, np.ones((len(X), 1)), X[:, :n_linear] / root], axis=1)


def mean_outer(phi, g):
    out = np.zeros((g.shape[1], phi.shape[1]))
    for features, gradient in zip(phi, g, strict=True):
        out += np.outer(gradient, features) / len(phi)
    return out


def largest_eigenvalue(A):
    return np.linalg.eigvalsh(A)[-1]


# moments.py -----------------------------------------------------------------------------------------------------------


def scale_rows(raw, learn, is_number, limit, before=None):
    """Rows scaled by the mean and deviation of all that was observed and learnt up to each, itself included.

    `before` holds what every column had observed earlier. Returns the rows and what every column has observed now.
    """
    observed = [list(values) for values in (before or [[] for _ in is_number])]
    out = np.zeros(raw.shape)
    for r, row in enumerate(raw):
        for j, value in enumerate(row):
            if math.isnan(value):
                continue
            value = min(max(value, -1e150), 1e150)
            if not is_number[j]:
                out[r, j] = value
                continue
            sample = np.array([*observed[j], value], np.float64)
            deviation = sample.std()
            out[r, j] = 0.0 if deviation == 0 else np.clip((value - sample.mean()) / deviation, -limit, limit)
            if learn[r]:
                observed[j].append(value)
    return out, observed


def clip_rows(raw, limit):
    return np.array([[0.0 if math.isnan(v) else min(max(v, -limit), limit) for v in row] for row in raw])


# recursive.py ---------------------------------------------------------------------------------------------------------


def _four_rows(r0, r1, r2, r3, x0, x1, x2, x3, x, v):
    """Their sums with x, and v with their shares added."""
    n, shares = len(r0), zip((r0, r1, r2, r3), (x0, x1, x2, x3), strict=True)
    v = np.array(v)
    for row, x_i in shares:
        v[:n] += row * x_i
    return tuple(_dot(row, x[:n]) for row in (r0, r1, r2, r3)), v


def _subtract(row, factor, v):
    return [row[j] - factor * v[j] for j in range(len(row))]


def dot(a, b):
    return _dot(a, b)


def symmetric(P):
    """The whole of a matrix of which the lower triangle counts."""
    return np.tril(P) + np.tril(P, -1).T


def symmetric_product(P, x):
    return symmetric(P) @ x


def downdate(P, v, factor):
    return symmetric(P) - factor * np.outer(v, v)


def learn_least_squares(P, W, phi, errors, weight, drift, largest):
    """By the matrix whose inverse P is, to which a record adds its outer product."""
    P = np.linalg.inv(np.linalg.inv(symmetric(P)) + weight * np.outer(phi, phi))
    W = W + weight * np.outer(errors, P @ phi)
    P[np.diag_indices_from(P)] = np.minimum(np.diag(P) + drift, largest)
    return P, W


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


def softmax_into(scores, temperature):
    exponents = temperature * np.array(scores)
    powers = np.exp(exponents - exponents.max())
    return powers / powers.sum()


def hedge_weights(losses, eta):
    return softmax_into(losses, -eta)


def step_temperature(log_temperature, scores, p, label):
    slope = math.exp(log_temperature) * (np.dot(p, scores) - scores[label])
    return float(np.clip(log_temperature - 0.05 * np.clip(slope, -2, 2), 0, 4))


def deviation(moments):
    count, _, squares = moments
    return math.sqrt(squares / count) if count else 0.0


def take_target(moments, y):
    """Two samples put together, the second a single number."""
    count, mean, squares = moments
    return np.array([count + 1, (count * mean + y) / (count + 1), squares + count / (count + 1) * (y - mean) ** 2])


def pass_labels(
    Phi,
    labels,
    sample_weights,
    heads_P,
    heads_W,
    drifts,
    ridge,
    linear_P,
    linear_W,
    forgetting,
    log_temperatures,
    losses,
    eta,
    only_heads,
):
    heads_P, heads_W, linear_P, linear_W = (list(part) for part in (heads_P, heads_W, linear_P, linear_W))
    temperatures, losses, out = list(log_temperatures), np.array(losses), []
    H, E, K = len(heads_W), len(linear_W), len(heads_W[0])
    for phi, label, weight in zip(Phi, labels, sample_weights, strict=True):
        linear = phi[len(phi) - linear_W[0].shape[1] :] if E else None
        scores = [W @ phi for W in heads_W]
        p = [softmax_into(score, math.exp(t)) for score, t in zip(scores, temperatures, strict=True)]
        p += [softmax_into(W @ linear, 1) for W in linear_W]
        out.append(hedge_weights(losses, eta) @ np.array(p))
        if label < 0:
            continue
        truth = np.eye(K)[label]
        for j in range(H):
            heads_P[j], heads_W[j] = learn_least_squares(
                heads_P[j], heads_W[j], phi, truth - 1 / K - scores[j], weight, drifts[j], 1 / ridge
            )
        if only_heads:
            continue
        losses = 0.99 * losses - np.log([0.999 * distribution[label] + 0.001 / K for distribution in p])
        temperatures = [step_temperature(temperatures[j], scores[j], p[j], label) for j in range(H)]
        for e in range(E):
            linear_P[e], linear_W[e] = learn_newton(
                linear_P[e], linear_W[e], linear, p[H + e], label, weight, forgetting[e], ridge
            )
    return heads_P, heads_W, linear_P, linear_W, temperatures, losses, out


def pass_numbers(
    Phi,
    targets,
    sample_weights,
    heads_P,
    heads_W,
    drifts,
    ridge,
    linear_P,
    linear_W,
    linear_drifts,
    moments,
    linear_moments,
    losses,
    squared_errors,
    eta,
    only_heads,
):
    heads_P, heads_W, linear_P, linear_W = (list(part) for part in (heads_P, heads_W, linear_P, linear_W))
    losses, out = np.array(losses), []
    H, E = len(heads_W), len(linear_W)
    for phi, y, weight in zip(Phi, targets, sample_weights, strict=True):
        linear = phi[len(phi) - linear_W[0].shape[1] :] if E else None
        scores = [W @ phi for W in heads_W]
        linear_scores = [W @ linear for W in linear_W]
        predictions = [moments[1] + deviation(moments) * score[0] for score in scores]
        predictions += [linear_moments[1] + deviation(linear_moments) * score[0] for score in linear_scores]
        mixed = np.dot(hedge_weights(losses, eta), predictions)
        total, number = squared_errors
        variance = deviation(linear_moments) ** 2 or 1
        out.append([mixed, math.sqrt(total / number) if number else 0, variance])
        if math.isnan(y):
            continue
        if not only_heads:
            squared_errors = 0.99 * np.array(squared_errors) + [(y - mixed) ** 2, 1]
            squared = np.minimum((y - np.array(predictions)) ** 2 / variance, 4)
            losses = 0.99 * losses + 0.2 * squared / (np.median(squared) + 0.05)
            linear_moments = take_target(linear_moments, y)
            standardised = (y - linear_moments[1]) / (deviation(linear_moments) or 1)
            for e in range(E):
                linear_P[e], linear_W[e] = learn_least_squares(
                    linear_P[e],
                    linear_W[e],
                    linear,
                    standardised - linear_scores[e],
                    weight,
                    linear_drifts[e],
                    1 / ridge,
                )
        moments = take_target(moments, y)
        standardised = (y - moments[1]) / (deviation(moments) or 1)
        for j in range(H):
            heads_P[j], heads_W[j] = learn_least_squares(
                heads_P[j], heads_W[j], phi, standardised - scores[j], weight, drifts[j], 1 / ridge
            )
    return heads_P, heads_W, linear_P, linear_W, moments, linear_moments, losses, squared_errors, out
