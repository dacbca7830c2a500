"""The start of a run: anew, or at the newest checkpoint that this configuration may go on from."""

from __future__ import annotations

import logging
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from connectors.ports import Mark, Position
from streamkernel.daemon.base.counts import RecordCounts
from streamkernel.daemon.base.errors import CheckpointError, UnfitError
from streamkernel.daemon.base.model import Model
from streamkernel.daemon.checkpoints.file import Checkpoint
from streamkernel.daemon.checkpoints.payload import load_model
from streamkernel.daemon.checkpoints.schema import check_header
from streamkernel.daemon.checkpoints.store import CheckpointStore
from streamkernel.daemon.config.plan import Plan
from streamkernel.daemon.labels import snapshot
from streamkernel.daemon.labels.join import LabelJoin
from streamkernel.daemon.recovery.header import check_labels, check_source, check_versions, mark_of
from streamkernel.daemon.recovery.replayed import ReplayedLetters

__all__ = ["Start", "begin", "restore", "resume"]

_log = logging.getLogger(__name__)


@dataclass
class Start:
    """The state a run starts from, new or restored.

    Attributes
    ----------
    model
        The model, new or restored.
    counts, recent_dead
        The counts so far, and the latest dead letters, as `DeadLetterRate.recent` gives them.
    positions
        Where each partition goes on; empty at the beginning of the source.
    outputs
        What a checkpoint says about each output, by its key.
    join
        The join of late labels; None where there are none.
    resumed
        Whether there was a checkpoint.
    whole
        Whether all of it was taken over.
    inputs
        The names that a model of River's has learnt, as `InputNames.to_text` gives them.
    written
        When it was written, in seconds since 1970; NaN where there was none.
    replayed
        The dead letters that were replayed.

    """

    model: Model
    counts: RecordCounts = field(default_factory=RecordCounts)
    recent_dead: list[int] = field(default_factory=list)
    positions: dict[int, Position] = field(default_factory=dict)
    outputs: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    join: LabelJoin | None = None
    resumed: bool = False
    whole: bool = True
    inputs: str = ""
    written: float = math.nan
    replayed: ReplayedLetters = field(default_factory=ReplayedLetters)

    def mark_of(self, key: str, written: Mapping[str, Any]) -> Mark | None:
        """Return the mark an output goes on from: None where it begins anew, also because it now goes elsewhere."""
        return mark_of(self.outputs, key, written)


def begin(plan: Plan) -> Start:
    """Return the start of a run that begins anew: the new model, and nothing taken yet."""
    labels = plan.config.labels
    if labels is None:
        return Start(plan.model)
    target = getattr(labels.source, "target", None) or "target"
    learn = plan.config.mode == "learn"
    most = labels.max_pending_bytes
    join = LabelJoin(labels.key, target, labels.timeout_seconds, labels.max_pending, max_bytes=most, learn=learn)
    return Start(plan.model, join=join)


def resume(plan: Plan, store: CheckpointStore | None) -> Start:
    """Go on from the newest checkpoint that can be used, or begin where there is none.

    Raises
    ------
    CheckpointError
        Where the newest one does not fit the configuration, none of several is valid, or there is none for mode
        predict.

    """
    start = None if store is None else store.restore(lambda checkpoint: restore(plan, checkpoint))
    return start or restore(plan, None)


def restore(plan: Plan, checkpoint: Checkpoint | None) -> Start:
    """Go on from a checkpoint, or begin where there is none.

    Raises
    ------
    UnfitError
        Where the checkpoint does not fit the configuration.
    CheckpointError
        Where what it holds is refused, or there is none for mode predict.

    """
    serving = plan.config.mode == "predict"
    if checkpoint is None:
        if serving:
            raise CheckpointError(
                f"{plan.raw['checkpoint']['directory']}: holds no checkpoint, and mode predict has no other model: "
                "run with mode learn first"
            )
        return begin(plan)
    header = checkpoint.header
    check_header(header)
    check_versions(header)
    try:
        check_source(header, plan)
        moved = False
    except UnfitError:
        if not serving:
            raise
        moved = True  # a model learnt from one source may serve another
    labels = header.get("labels")
    payload, waiting = snapshot.part(checkpoint.payload, labels)
    start = begin(plan)
    start.model = load_model(payload, plan.model, plan.config.imports)
    start.outputs, start.resumed, start.written = header["outputs"], True, header["written"]
    start.inputs = header.get("inputs", "")
    if moved:
        _log.info("the model was learnt from another source: this one is read from its beginning")
        start.whole = False
        return start
    start.counts = RecordCounts(**header["account"])
    start.recent_dead = list(header["recent_dead"])
    start.replayed = ReplayedLetters.from_json(header.get("replayed", []))
    start.positions = {place[1]: Position(*place) for place in header["positions"]}
    if labels:
        start.whole = _labels_fit(header, plan)
        if start.whole and start.join is not None:
            snapshot.restore(start.join, labels, waiting)
    return start


def _labels_fit(header: Mapping[str, Any], plan: Plan) -> bool:
    """Return whether the late labels of a checkpoint are to go on; a model that serves may do without."""
    try:
        check_labels(header, plan)
    except UnfitError as error:
        if plan.config.mode != "predict":
            raise
        _log.warning("%s: the %d records that wait for labels are given up", error, header["labels"]["pending"])
        return False
    return True
