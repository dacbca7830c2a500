"""How far each input moves the predictions of a growing machine, measured at points that vary as its stream did."""

import numpy as np

from streamkernel.growth.machine import Machine
from streamkernel.growth.points import points
from streamkernel.records.classes import Classes
from streamkernel.records.contributions import groups_of, mean_contributions, n_explained
from streamkernel.records.two_sides import TwoSides
from streamkernel.state import Array

__all__ = ["importances"]

_NO_KEYS = np.zeros(0, np.uint64)


def importances(machine: Machine) -> list[tuple[str, float]]:
    """Compute the mean absolute contribution of each input, with its name; nothing is changed."""
    expansion, inputs, targets = machine.solution, machine.inputs, machine.targets
    groups = groups_of(inputs.columns)
    rows = points(inputs, groups, n_explained(len(groups)), expansion.kernel.domain)

    def predict(X: Array) -> Array:
        scores = expansion.scores(X.astype(expansion.dtype), inputs.columns.keys, _NO_KEYS, alone=True)
        return targets.distribution(scores)[1] if isinstance(targets, Classes | TwoSides) else scores

    return mean_contributions(predict, rows, np.zeros(len(inputs)), groups)
