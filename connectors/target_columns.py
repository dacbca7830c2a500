"""Several targets: their columns in a record, and in a table of predictions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from streamkernel.connectors.columns.uses import target_use
from streamkernel.connectors.decode import TargetDecoder, UndecodableError, shown
from streamkernel.connectors.names import find, nfc
from streamkernel.connectors.ports import ColumnUse, Label

__all__ = ["SpreadTargets", "Target", "TargetColumns", "names_of"]

Target: TypeAlias = str | Sequence[str] | None
"""The column of the target, or those of several; None: records are unlabeled."""


def names_of(target: Target) -> tuple[str, ...]:
    """Return the column names of the targets.

    Examples
    --------
    >>> names_of("y"), names_of(["a", "b"]), names_of(None)
    (('y',), ('a', 'b'), ())

    """
    return () if target is None else (nfc(target),) if isinstance(target, str) else tuple(map(nfc, target))


class TargetColumns:
    """A reader of several targets of a record.

    Parameters
    ----------
    names
        Their columns.
    decoder
        Reads a value of each.

    Examples
    --------
    >>> TargetColumns(["a", "b", "c"], TargetDecoder("float", 256)).read({"a": "1", "b": "", "x": "5"})
    {'a': 1.0, 'b': None, 'c': None}

    """

    def __init__(self, names: Sequence[str], decoder: TargetDecoder) -> None:
        self.names = tuple(names)
        self._decoder = decoder

    def read(self, values: Mapping[str, Any]) -> dict[str, Label | None] | None:
        """Return the targets by name, None for each missing one; None if all are missing.

        Raises UndecodableError as `TargetDecoder`.
        """
        targets: dict[str, Label | None] = {}
        for name in self.names:
            try:
                targets[name] = self._decoder.decode(values[name] if name in values else find(values, name))
            except UndecodableError as error:
                raise UndecodableError(error.fault.reason, f"column {shown(name)}: {error}") from None
        return targets if any(value is not None for value in targets.values()) else None

    def uses(self, values: Mapping[str, Any]) -> list[ColumnUse]:
        """Return the use of the targets' columns."""
        return [target_use(name, find(values, name), self._decoder) for name in self.names]


class SpreadTargets:
    """A converter of a line's predictions, targets and probabilities to columns, one for each target.

    Parameters
    ----------
    targets
        The names of the targets; without any, lines stay as they are.

    Examples
    --------
    >>> spread = SpreadTargets(["a", "b"])
    >>> spread({"prediction": {"a": 1.5}, "target": None, "id": 7})
    {'prediction_a': 1.5, 'prediction_b': None, 'target_a': None, 'target_b': None, 'id': 7}
    >>> spread({"probabilities": {"a": {False: 0.75, True: 0.25}}})
    {'probability_a': 0.25, 'probability_b': None}

    """

    _COLUMNS: Mapping[str, str] = {"prediction": "prediction", "target": "target", "probabilities": "probability"}

    def __init__(self, targets: Sequence[str] = ()) -> None:
        self._targets = tuple(targets)
        self.names = tuple(f"{column}_{name}" for column in ("prediction", "target") for name in targets)

    def __call__(self, line: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return a line with a column for each target."""
        spread: dict[str, Any] = {}
        for key, value in line.items():
            if key not in self._COLUMNS:
                spread[key] = value
                continue
            for name in self._targets:
                one = (value or {}).get(name)
                spread[f"{self._COLUMNS[key]}_{name}"] = one.get(True) if isinstance(one, dict) else one
        return spread
