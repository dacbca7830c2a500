"""Twins of running moments: means, deviations and what counts as an outlier, from all values that are kept."""

import copy
import math

import numpy as np

#: Of inputs and of targets: deviations past which values are far, as how many they count, how much narrower blocks are.
INPUTS, TARGETS = (5, 3, 3), (100, 6, 40)


class Moments:
    """The values of one input or target as they counted: of all, and of the block; and the run of far ones."""

    def __init__(self, guard=INPUTS):
        self.far, self.counts_as, self.narrower = guard
        self.count([])
        self.block = []
        self.run = self.seen = 0

    def count(self, values):
        """Let all that counts be these values."""
        self.counted = values
        self.mean, self.deviation = np.mean(values) if values else 0.0, deviation(values)

    def __len__(self):
        return len(self.counted)

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
    mean, deviation = np.mean(values), np.std(values)
    return abs(value - mean) > far * deviation and deviation > 1e-12 * abs(mean)


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
    values, far = updated(moments, value)
    moments.count(values)
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
        moments.count(moments.block)
    forget_block(moments)
    return replaced


def drawn_in(standardized, bounded):
    far = abs(standardized)
    return math.copysign(100 * (100 / far) ** 2 if bounded and far > 100 else min(far, 100), standardized)


def near(moments, value):
    if len(moments) < 32 or moments.deviation <= 1e-12 * abs(moments.mean):
        return value
    standardized = drawn_in((value - moments.mean) / moments.deviation, moments.bounded)
    return moments.mean + moments.deviation * standardized


def scale_rows(raw, learn, is_number, limit, before=None):
    """Rows scaled by the mean and deviation of all that counted and was learned up to each, itself included.

    `before` holds what every column had learned earlier. Returns the rows and what every column has learned now.
    """
    learned = copy.deepcopy(before or [Moments() for _ in is_number])
    out = np.zeros(raw.shape)
    for r, row in enumerate(raw):
        for j, value in enumerate(row):
            if math.isnan(value):
                continue
            value = min(max(value, -1e100), 1e100)
            if not is_number[j]:
                out[r, j] = value
                continue
            sample, _ = updated(learned[j], value)
            deviation = np.std(sample)
            out[r, j] = 0.0 if deviation == 0 else np.clip((value - np.mean(sample)) / deviation, -limit, limit)
            if learn[r]:
                keep(learned[j], value)
    return out, learned


def plain_moments(raw, learn, limit):
    """The moments of columns that are clipped only: count, mean and squares of all learned, and count again."""
    rows = []
    for column in np.clip(raw[learn].T, -limit, limit):
        seen = column[~np.isnan(column)]
        mean = seen.mean() if len(seen) else 0.0
        rows.append([len(seen), mean, ((seen - mean) ** 2).sum(), 0, len(seen), 0, 0, 0])
    return np.array(rows)


def clip_rows(raw, limit):
    return np.array([[0.0 if math.isnan(v) else min(max(v, -limit), limit) for v in row] for row in raw])


def scale(values, learned, standardize, limit, is_number, before=None):
    """Rows, and what every column has observed now."""
    if standardize:
        return scale_rows(values, learned, is_number, limit, before)
    return clip_rows(values, limit), before


def take_target(moments, y):
    """A target among all up to it, and whether the block took their place; the moments learn it."""
    bounded, (sample, _) = moments.bounded, updated(moments, y)
    # Without rounding: equal values have no deviation, however many there are.
    mean = sample[0] if len(set(sample)) == 1 else math.fsum(sample) / len(sample)
    standardized = (y - mean) / (math.sqrt(math.fsum((one - mean) ** 2 for one in sample) / len(sample)) or 1.0)
    return drawn_in(standardized, bounded and len(sample) > 32), keep(moments, y)


def standardize(y, moments):
    """Each number among all up to it, and the mean and deviation before each; the moments learn them."""
    out, before = [], []
    for value in y:
        before.append((moments.mean, moments.deviation))
        out.append(math.nan if math.isnan(value) else take_target(moments, value)[0])
    return out, before


def standardize_columns(y, moments):
    """Each column as `standardize` has it, by moments of its own."""
    of_each = [standardize(column, one) for column, one in zip(zip(*y, strict=True), moments, strict=True)]
    return [list(zip(*rows, strict=True)) for rows in zip(*of_each, strict=True)]
