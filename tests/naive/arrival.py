"""Twins of what a record goes through before the experts: scaling, the window of the last records, columns."""

import numpy as np

from tests.naive.features import adaptive_columns
from tests.naive.moments import scale


def remember(window, x, target, weight):
    """`window` is a list of all that came, of which the last count."""
    window.append((x, target, weight))


def arrive(values, extras, targets, weights, learnt, scaling, feature_map, window):
    """Columns of all rows, and what every input has observed by now; `window` takes the rows learnt.

    `scaling` is whether to standardize, the limit, which inputs are numbers, and what each had observed before.
    """
    standardize, limit, is_number, observed = scaling
    scaled, observed = scale(values, learnt, standardize, limit, is_number, observed)
    for r in np.flatnonzero(learnt):
        remember(window, scaled[r], targets[r], weights[r])
    W, scales, root, n_linear = feature_map
    return adaptive_columns(np.concatenate([scaled, extras], axis=1), W, scales, root, n_linear), observed
