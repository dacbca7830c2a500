"""How far each input moves the predictions of a growing machine, measured at points that vary as its stream did."""

from collections.abc import Sequence
from statistics import NormalDist

import numpy as np

from streamkernel.compute.gaussians import feature_words, mix64
from streamkernel.compute.moments import COUNT, M2, MEAN, SEEN
from streamkernel.domain import Domain
from streamkernel.growth.record_machine import RecordMachine
from streamkernel.records.classes import Classes, TwoSides
from streamkernel.records.contributions import Group, groups_of, mean_contributions, n_explained
from streamkernel.records.inputs import Inputs
from streamkernel.state import Array

#: How far from the edge of a domain a point is at least.
_EDGE = 1e-3
#: The streams of the points, which are the same for every model: of values, and of what is observed.
_VALUES, _OBSERVED = np.uint64(0x706F696E7473), np.uint64(0x736565)


def points(inputs: Inputs, groups: Sequence[Group], n: int, domain: Domain | None) -> Array:
    """Draw scaled rows of independent inputs, each distributed as on the stream.

    Numbers are normal, of the mean and the variance that they had. Each value of a string comes as often as it did, and
    what was not always observed is absent as often. The draws are stratified: each column has these moments and shares
    to within one record.

    - inputs: d columns with their moments.
    - groups: The columns of each input.
    - n: How many rows are drawn.
    - domain: The numbers the kernel takes; None is any.

    Returns float64 of shape (n, d); 0 is not observed.
    """
    moments = inputs.scaler.moments
    seen = [float(moments[group.columns, SEEN].sum()) for group in groups]
    most = max([*seen, 1.0])
    normal = np.array([NormalDist().inv_cdf((i + 0.5) / n) for i in range(n)])
    X = np.zeros((n, len(inputs)))
    for group, count in zip(groups, seen, strict=True):
        first = group.columns[0]
        order = _order(n, _VALUES, inputs.columns.keys[first])
        if group.is_string:
            edges = np.cumsum(moments[group.columns, SEEN]) / most
            values = np.searchsorted(edges, (np.arange(n) + 0.5) / n, side="right")
            for row, value in zip(order, values.tolist(), strict=True):
                if value < len(edges):
                    X[row, group.columns[value]] = 1.0
            continue
        drawn = normal
        spread = np.sqrt(moments[first, M2] / max(moments[first, COUNT], 1))
        if not inputs.standardize:
            drawn = moments[first, MEAN] + normal * spread
            if domain is not None:
                drawn = domain.least + np.maximum(np.abs(drawn - domain.least), _EDGE)
        elif not spread:
            continue
        X[order, first] = drawn
        X[_order(n, _OBSERVED, inputs.columns.keys[first])[round(n * count / most) :], first] = 0.0
    return X


def _order(n: int, stream: np.uint64, key: np.uint64) -> Array:
    """The numbers below n in an order that follows from the key of a column."""
    words = np.empty(n, np.uint64)
    feature_words(stream, 0, words)
    return np.argsort(np.array([mix64(word ^ key) for word in words], np.uint64), kind="stable")


def importances(machine: RecordMachine) -> list[tuple[str, float]]:
    """Compute the mean absolute contribution of each input, with its name; nothing is changed."""
    inputs, targets = machine.inputs, machine.targets
    groups = groups_of(inputs.columns)
    rows = points(inputs, groups, n_explained(len(groups)), machine.kernel.domain)

    def predict(X: Array) -> Array:
        scores = machine.scores(X.astype(machine.dtype))
        return targets.distribution(scores)[1] if isinstance(targets, Classes | TwoSides) else scores

    return mean_contributions(predict, rows, np.zeros(len(inputs)), groups)
