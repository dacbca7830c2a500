"""What flows between a source and the model: records, late labels, and the events that are made of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from streamkernel.connectors.ports import Label, Record
from streamkernel.daemon.base.model import Model, lagging

__all__ = ["Events", "LabelRecord", "Prediction"]


class LabelRecord(Record):
    """A record of the labels' source."""

    __slots__ = ()


class Prediction(NamedTuple):
    """A model's prediction for one record: label or number, None before it knows any, and probabilities of classes."""

    label: Any
    probabilities: Mapping[Any, float] | None = None


@dataclass(slots=True)
class Events:
    """A chunk of events in their order, as columns: what a model is to predict now, and what it is to learn now.

    Attributes
    ----------
    of
        The records, or the decisions about records, of which the events were made, in order; not each brings one.
    xs
        The inputs of each event.
    ys
        The target of each event, which is learned; None: there is none, nothing is learned.
    predict
        Whether the prediction of each event is wanted; None: of all.
    until_refused
        Whether the events after one that the model refuses are made again, knowing of the refusal.
    lags
        The targets known before each event or, of a record whose label came late, before its prediction, the latest
        first; None where no model wants them.

    """

    of: Sequence[Any]
    xs: Sequence[Mapping[str, Any]]
    ys: Sequence[Label | None]
    predict: Sequence[bool] | None = None
    until_refused: bool = False
    lags: Sequence[Sequence[Label]] | None = None

    def xs_for(self, model: Model) -> Sequence[Mapping[str, Any]]:
        """Return the inputs of each event, with the lags where the model wants some."""
        one = lagging(model)
        if self.lags is None or one is None:
            return self.xs
        return [one.with_lags(dict(x), known) for x, known in zip(self.xs, self.lags, strict=True)]
