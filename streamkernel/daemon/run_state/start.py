"""The state of a run: new, or restored from a checkpoint, and kept up to date."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from streamkernel.connectors.ports import Mark, Position
from streamkernel.daemon.base.counts import RecordCounts
from streamkernel.daemon.labels.join import LabelJoin
from streamkernel.daemon.run_state.outputs import mark_of
from streamkernel.daemon.run_state.replayed import ReplayedLetters
from streamkernel.daemon.run_state.run_models import RunModels
from streamkernel.daemon.run_state.trained import TrainedModel
from streamkernel.daemon.run_state.warm_start import WarmStart

__all__ = ["Start"]


@dataclass
class Start:
    """The state of a run.

    Attributes
    ----------
    models
        The models; in mode predict, the one that another run learned.
    counts, recent_dead
        The counts so far, and at the start the latest dead letters, as `DeadLetterRate.recent` gives them.
    positions
        Where each partition continues; empty at the beginning of the source.
    outputs
        What the checkpoint says about each output, by its key.
    marks
        The marks of the outputs for the next checkpoint, by their keys.
    join
        The join of late labels; None where there are none.
    warm
        How far the source is learned that comes first; None where there is none.
    trained
        Of mode predict, the model as it was read from the directory of the run that learned it, kept up to date; None
        in mode learn.
    newer
        Of mode predict, gives a newer model, None where there is none.
    replayed
        The dead letters that were replayed.
    resumed
        Whether there was a checkpoint.
    whole
        Whether all of it was restored.
    written
        When it was written, in seconds since 1970; NaN where there was none.

    """

    models: RunModels
    counts: RecordCounts = field(default_factory=RecordCounts)
    recent_dead: list[int] = field(default_factory=list)
    positions: dict[int, Position] = field(default_factory=dict)
    outputs: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    marks: Mapping[str, Mark | None] = field(default_factory=dict)
    join: LabelJoin | None = None
    warm: WarmStart | None = None
    trained: TrainedModel | None = None
    newer: Callable[[], TrainedModel | None] = lambda: None
    replayed: ReplayedLetters = field(default_factory=ReplayedLetters)
    resumed: bool = False
    whole: bool = True
    written: float = math.nan

    def mark_of(self, key: str, written: Mapping[str, Any]) -> Mark | None:
        """Return the mark an output continues from: None where it starts over, also because it now goes elsewhere."""
        return mark_of(self.outputs, key, written)
