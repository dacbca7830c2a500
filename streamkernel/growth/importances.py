"""How far each input moves the predictions of a growing machine, measured at points that vary as its stream did."""

import numpy as np

from streamkernel.growth.points import points
from streamkernel.growth.record_machine import RecordMachine
from streamkernel.records.classes import Classes
from streamkernel.records.contributions import groups_of, mean_contributions, n_explained
from streamkernel.records.two_sides import TwoSides
from streamkernel.state import Array

__all__ = ["importances"]


def importances(machine: RecordMachine) -> list[tuple[str, float]]:
    """Compute the mean absolute contribution of each input, with its name; nothing is changed."""
    inputs, targets = machine.inputs, machine.targets
    groups = groups_of(inputs.columns)
    rows = points(inputs, groups, n_explained(len(groups)), machine.kernel.domain)

    def predict(X: Array) -> Array:
        scores = machine.scores(X.astype(machine.dtype))
        return targets.distribution(scores)[1] if isinstance(targets, Classes | TwoSides) else scores

    return mean_contributions(predict, rows, np.zeros(len(inputs)), groups)
