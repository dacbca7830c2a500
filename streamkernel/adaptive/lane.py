"""The fast lane: one record of known numbers at a time, through arrays that are looked up once."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from streamkernel.adaptive.experts import LabelExperts, NumberExperts
from streamkernel.records.plain import PlainRecords
from streamkernel.state import Array


class Lane:
    """A compiled pass of one record with its arguments; it holds until one of these arrays is another.

    Parameters
    ----------
    names
        The inputs in the order of their columns, all of them.
    truth
        Room for a label's column or a number, shape (1,).
    experts
        Where it passes.
    bind
        Gives the arguments of their pass, for room of values (1, d), extras (1, 0), truth, weights (1,).

    """

    def __init__(
        self,
        names: tuple[Any, ...],
        truth: Array,
        experts: LabelExperts | NumberExperts,
        bind: Callable[[Array, Array, Array, Array], tuple[Any, ...]],
    ) -> None:
        self._records = PlainRecords(names)
        self._truth = truth
        self._experts = experts
        self._arguments = bind(self._records.values, np.zeros((1, 0)), truth, np.ones(1))

    def takes(self, x: Mapping[Any, Any], truth: float) -> bool:
        """Let a record pass if it is one of known numbers; False, and nothing has happened, if it is another."""
        if not self._records.read_one(x):
            return False
        self._truth[0] = truth
        self._experts.run(*self._arguments)
        return True

    @property
    def said(self) -> list[float]:
        """What was said of the last record."""
        said: list[float] = self._arguments[-1][0].tolist()
        return said
