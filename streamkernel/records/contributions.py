"""The contributions of inputs to the predictions of recent records: how far each input moves them."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from streamkernel.records.input_columns import InputColumns
from streamkernel.state import Array, untag

#: Records whose predictions are explained: at most, at least, and with very many inputs as many as cost this number of
#: predictions.
MOST, LEAST, PREDICTIONS = 128, 4, 1024


class Group(NamedTuple):
    """The columns of one input, by its name: of a number, or of all values of a string."""

    name: str
    columns: list[int]
    is_string: bool


def groups_of(columns: InputColumns) -> list[Group]:
    """Return the inputs that columns belong to, in the order of their arrival."""
    found: dict[str, Group] = {}
    for place, tagged in enumerate(columns):
        # A number and a string may share a name, and names of different types may look alike.
        key = repr(tagged[:2])
        group = found.setdefault(key, Group(str(untag(tagged[1])), [], tagged[0] == "indicator"))
        group.columns.append(place)
    return [*found.values()]


def n_explained(n_groups: int) -> int:
    """Compute how many records are explained where there are `n_groups` inputs. Each costs two predictions."""
    return max(min(PREDICTIONS // (2 * max(n_groups, 1)), MOST), LEAST)


def mean_contributions(
    predict: Callable[[Array], Array], rows: Array, nothing: Array, groups: Sequence[Group]
) -> list[tuple[str, float]]:
    """Compute the mean absolute contribution of each input to predictions.

    An input's contribution to one prediction is the mean of two changes: where it is taken from all inputs, and where
    it comes alone. That is its Shapley value where no more than two inputs interact. A number contributes against its
    mean. A string has no such value of its own, so its contributions are taken against their mean. An input that is
    always the same contributes nothing.

    - predict: Gives the predictions of m rows, float64 of shape (m, K).
    - rows: Encoded records, float64 of shape (n, d).
    - nothing: The content of the columns of an input that is taken away, NaN or a value, shape (d,).
    - groups: The inputs.

    Returns the name of each input with its mean absolute contribution, summed over the K outputs.
    """
    whole, none = predict(rows), predict(nothing[None, :])
    taken_away, varies = _alike(rows, nothing), ~np.asarray(_alike(rows, rows[0]).all(axis=0))
    found = []
    for name, columns, is_string in groups:
        if not varies[columns].any():
            found.append((name, 0.0))
            continue
        there = ~taken_away[:, columns].all(axis=1)
        m = int(there.sum())
        without, alone = rows[there], np.tile(nothing, (m, 1))
        alone[:, columns] = without[:, columns]
        without[:, columns] = nothing[columns]
        changed = predict(np.concatenate([without, alone]))
        moved = np.zeros_like(whole)
        moved[there] = (whole[there] - changed[:m]) / 2 + (changed[m:] - none) / 2
        if is_string:
            moved -= moved.mean(axis=0)
        found.append((name, float(np.abs(moved).mean(axis=0).sum())))
    return found


def _alike(rows: Array, row: Array) -> Array:
    """Which values of rows are those of one row; NaN is itself."""
    return np.asarray((rows == row) | (np.isnan(rows) & np.isnan(row)))
