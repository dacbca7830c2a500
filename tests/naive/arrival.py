"""Twins of what a record goes through before the experts: scaling and columns."""

import numpy as np

from tests.naive.features import adaptive_columns
from tests.naive.moments import scale


def arrive(values, extras, learned, scaling, feature_map):
    """All rows scaled, their columns, and what every input has observed by now.

    `scaling` is whether to standardize, the limit, which inputs are numbers, and what each had observed before.
    """
    standardize, limit, is_number, observed = scaling
    scaled, observed = scale(values, learned, standardize, limit, is_number, observed)
    W, scales, root, n_linear = feature_map
    X = np.concatenate([scaled, extras], axis=1)
    return X, adaptive_columns(X, W, scales, root, n_linear), observed
