"""Twins of the figures of calibration: one record after the other, and every bin by itself."""

import math
import statistics


def expected_calibration_error(targets, predictions, probabilities, n_bins=10):
    """The expected calibration error of labels, each with the probability of the one that is predicted."""
    kept = [
        (given.get(label, 0.0), label == target)
        for target, label, given in zip(targets, predictions, probabilities, strict=True)
        if label is not None and given and not math.isnan(given.get(label, 0.0))
    ]
    error = 0.0
    for b in range(n_bins):
        low, high = b / n_bins, (b + 1) / n_bins
        inside = [(p, right) for p, right in kept if low < p <= high or (b == 0 and p == 0.0)]
        if inside:
            confidence = math.fsum(p for p, _ in inside) / len(inside)
            accuracy = sum(right for _, right in inside) / len(inside)
            error += len(inside) / len(kept) * abs(confidence - accuracy)
    return error if kept else math.nan


def interval_coverage(targets, predictions, deviations, level=0.9):
    """The share of targets in the central interval of a Gaussian, by its distribution function."""
    inside = []
    for y, mean, deviation in zip(targets, predictions, deviations, strict=True):
        if mean is None or math.isnan(deviation):
            continue
        if deviation == 0.0:
            inside.append(y == mean)
            continue
        below = statistics.NormalDist(mean, deviation).cdf(y)
        inside.append((1 - level) / 2 <= below <= (1 + level) / 2)
    return sum(inside) / len(inside) if inside else math.nan
