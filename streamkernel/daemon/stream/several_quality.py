"""The report metrics of several targets: those of each, and their means."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from streamkernel.daemon.stream.quality import Quality
from streamkernel.finite import finite_mean

__all__ = ["SeveralQuality"]


class SeveralQuality(Quality):
    """The report metrics of several targets, which are the means over the targets, as River's `MacroAverage` has them.

    Parameters
    ----------
    task
        That of each target.
    names, window
        As `Quality` takes them.

    Examples
    --------
    >>> quality = SeveralQuality("regression", ["mae"], window=2)
    >>> quality.add([{"a": 1.0, "b": 5.0}, {"a": 2.0}], [{"a": 2.0, "b": 2.0}, {"a": 2.0, "b": 0.0}], None)
    >>> quality.overall(), {name: one["mae"] for name, one in quality.rolling_of_targets().items()}
    ({'mae': 1.75}, {'a': 0.5, 'b': 3.0})

    """

    def __init__(self, task: str, names: Sequence[str], window: int) -> None:
        super().__init__(task, names, window)
        self._task = task
        self._of_targets: dict[str, Quality] = {}

    def add(
        self, targets: Sequence[Any], predictions: Sequence[Any], probabilities: Sequence[Mapping[Any, Any]] | None
    ) -> None:
        """Take in labeled records, each with the targets that it has."""
        for name in dict.fromkeys(name for y in targets for name in y):
            rows = [row for row, y in enumerate(targets) if y.get(name) is not None]
            if not rows:
                continue
            if name not in self._of_targets:
                self._of_targets[name] = Quality(self._task, self.names, self.window)
            self._of_targets[name].add(
                [targets[row][name] for row in rows],
                [(predictions[row] or {}).get(name) for row in rows],
                None if probabilities is None else [(probabilities[row] or {}).get(name, {}) for row in rows],
            )

    def overall(self) -> dict[str, float]:
        """Return the mean of each metric over the targets, over all records; NaN before the first."""
        return self._means(Quality.overall)

    def baseline(self) -> dict[str, float]:
        """Return the mean of each metric that the baselines of the targets have."""
        found = self._means(Quality.baseline)
        return {name: value for name, value in found.items() if value == value}

    def rolling(self) -> dict[str, float]:
        """Return the mean of each metric over the targets, over the window."""
        return self._means(Quality.rolling)

    def overall_of_targets(self) -> dict[str, dict[str, float]]:
        """Return each metric of each target over all records."""
        return {name: one.overall() for name, one in self._of_targets.items()}

    def rolling_of_targets(self) -> dict[str, dict[str, float]]:
        """Return each metric of each target over the window."""
        return {name: one.rolling() for name, one in self._of_targets.items()}

    def _means(self, figures: Callable[[Quality], dict[str, float]]) -> dict[str, float]:
        of_each = [figures(one) for one in self._of_targets.values()]
        return {name: finite_mean([one[name] for one in of_each if name in one]) for name in self.names}
