"""How far each input moves the predictions of an adaptive machine, measured at recent records."""

import numpy as np

from streamkernel.adaptive.machine import AdaptiveMachine
from streamkernel.records.contributions import Group, groups_of, mean_contributions, n_explained
from streamkernel.records.rows import Rows
from streamkernel.state import Array

__all__ = ["importances"]


def importances(machine: AdaptiveMachine) -> list[tuple[str, float]]:
    """Compute the mean absolute contribution of each input, with its name; nothing is changed.

    With a core that sees the lags, each of them is an input, against the mean target.
    """
    n_lags, n_inputs = len(machine.lags) if machine.lagged else 0, machine.core.n_inputs
    groups = [Group(name, [lag], False) for lag, name in enumerate(machine.lags.names[:n_lags])]
    for name, columns, is_string in groups_of(machine.inputs.columns):
        placed = [n_lags + column for column in columns if column < n_inputs]
        groups.append(Group(name, placed, is_string))
    rows, mean = _recent_rows(machine, n_explained(len(groups)))
    if not len(rows):
        return []

    def predict(given: Array) -> Array:
        values, lags = np.ascontiguousarray(given[:, n_lags:]), given[:, :n_lags].tolist() if n_lags else None
        return machine.predict_rows(Rows.known(values), lags)[:, : machine.targets.n_outputs]

    nothing = np.concatenate([np.full(n_lags, mean), np.full(n_inputs, np.nan)])
    return mean_contributions(predict, rows, nothing, groups)


def _recent_rows(machine: AdaptiveMachine, n: int) -> tuple[Array, float]:
    """Return n of the last records, spread evenly, as lags that a lagged core saw and inputs; and the mean target."""
    values, memory = machine.core.experts.forest.last_rows(), machine.core.experts.memory
    if not len(values):  # without trees
        n_kept = min(len(memory), memory.buffer_size)
        values = machine.inputs.scaler.as_they_came(memory.rows_from(n_kept, n_kept)[0])
    targets = memory.rows_from(len(memory), len(memory))[1]
    count = min(len(values), len(targets))
    n = min(n, count)
    if not n:
        return values[:0], 0.0
    chosen, mean = np.arange(n) * count // n, float(targets.mean())
    rows = values[len(values) - count :][chosen]
    if machine.lagged:
        # Before the first record that is remembered no target is known any more.
        n_lags, before = len(machine.lags), chosen + len(targets) - count
        known = np.concatenate([np.full(n_lags, mean), targets])
        rows = np.concatenate([known[before[:, None] + np.arange(n_lags)[::-1]], rows], axis=1)
    return rows, mean
