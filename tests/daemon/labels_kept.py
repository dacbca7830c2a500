"""What late labels keep, drawn and compared: labels, predictions, and a join that was restored."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hypothesis import strategies as st

from streamkernel.daemon.base.events import Prediction
from streamkernel.daemon.labels.join import LabelJoin
from streamkernel.daemon.labels.snapshot import restore

TEXT = st.text(st.characters(codec="utf-8"), min_size=1, max_size=20)
LABEL = TEXT | st.booleans() | st.integers(-(2**80), 2**80)
SHARE = st.floats(0.0, 1.0)


@st.composite
def predictions(draw: st.DrawFn) -> Prediction:
    """Draw what a model may have predicted."""
    if draw(st.booleans()):
        return Prediction(draw(st.none() | st.floats() | LABEL))
    given = draw(st.dictionaries(LABEL, SHARE, min_size=1, max_size=5))
    # A label that equals another one, as True does 1, comes as the one that the distribution has.
    other = LABEL.filter(lambda label: label not in given)
    return Prediction(draw(st.none() | st.sampled_from(list(given)) | other), given)


def typed(value: Any) -> Any:
    """With the types, for True equals 1 and -0.0 equals 0.0."""
    if isinstance(value, Mapping):
        return [(typed(key), typed(one)) for key, one in value.items()]
    if isinstance(value, tuple):
        return [typed(one) for one in value]
    return type(value), repr(value)


def taken(header: dict[str, Any], blob: bytes) -> LabelJoin:
    """Restore a join."""
    join = LabelJoin("id", "y", 3600.0, 6)
    restore(join, header, blob)
    return join
