"""What waits for labels in a checkpoint: what is written is read, and what would be refused is not written."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamkernel.daemon.base.errors import CheckpointError
from streamkernel.daemon.base.events import Prediction
from streamkernel.daemon.base.moments import Moments
from streamkernel.daemon.labels.join import LabelJoin
from streamkernel.daemon.labels.packed import PendingRecord
from streamkernel.daemon.labels.snapshot import dump
from tests.daemon.labels_kept import LABEL, predictions, taken, typed
from tests.daemon.labels_twin import Counting, Daemon, event


def join_with(**given: Any) -> LabelJoin:
    """A join in which a record, a label and a settled key stand, as it would be with something odd in it."""
    daemon = Daemon(6, Counting(), LabelJoin("id", "y", 3600.0, 6, clock=lambda: 0.0))
    daemon.take([event(False, 0, "p", None, "good"), event(True, 0, "q", "a", "good")])
    if "label" in given:
        early = daemon.join.waiting.pop("q")
        assert early is not None
        daemon.join.waiting.put("q", early._replace(y=given["label"]))
    if "predicted" in given:
        entry = daemon.join.pending.get("p")
        assert entry is not None
        assert entry.data is not None
        daemon.join.release(entry)
        entry.data = daemon.join.packer.pack(PendingRecord("p", 0.0, {"a": 1.0}, Prediction(*given["predicted"])))
    daemon.join.moments = given.get("moments", daemon.join.moments)
    daemon.join.counts.taken += given.get("taken", 0)
    return daemon.join


@pytest.mark.parametrize(
    ("odd", "reason"),
    [
        ({"label": math.nan}, "nan is no label"),
        ({"label": -math.inf}, "-inf is no label"),
        ({"label": None}, "None is no label"),
        ({"label": ["a"]}, "is no label"),
        ({"predicted": (None, {math.nan: 1.0})}, "a name or label is NaN"),
        ({"moments": Moments(3, math.nan, 1.0)}, "the moments of the targets are no numbers"),
        ({"moments": Moments(3, 1.0, math.inf)}, "the moments of the targets are no numbers"),
        ({"taken": 1}, "the account does not add up"),
    ],
)
def test_what_would_be_refused_is_not_written(odd: dict[str, Any], reason: str) -> None:
    with pytest.raises(CheckpointError, match="cannot be written to a checkpoint: ") as caught:
        dump(join_with(**odd))
    assert reason in str(caught.value)
    assert "\n" not in str(caught.value)


@given(
    st.floats() | LABEL | st.none() | st.lists(st.integers(), max_size=1),
    st.builds(Moments, st.integers(0), st.floats(), st.floats()),
    predictions(),
)
def test_what_is_written_is_read(label: Any, moments: Moments, predicted: Prediction) -> None:
    odd = join_with(label=label, moments=moments, predicted=predicted)
    try:
        header, blob = dump(odd)
    except CheckpointError:
        return
    again = taken(json.loads(json.dumps(header)), blob)
    assert typed(tuple(again.moments)) == typed((moments.n, moments.mean, moments.m2))
    assert [typed(early.y) for _, early in again.waiting] == [typed(label)]
