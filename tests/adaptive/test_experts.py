"""Experts with what is due to the heads' matrices: nobody who looks sees it, and looking changes nothing."""

import numpy as np
import pytest

from streamkernel.adaptive.memory import Memory
from streamkernel.adaptive.target_experts import LabelExperts, NumberExperts
from streamkernel.compute.number_pass import MAGNITUDES
from tests.adaptive.experts import learn_columns

RIDGE = 0.1
DRIFTS = (0.0, 1e-3, 3e-2)
D, L = 43, 6
#: Trees of an ensemble and their window, which is grown on from the 30th record on.
TREES = 3, 40
#: What heads for numbers know of the targets they have learned.
SCALES = {"moments", "asinh_moments", "magnitudes", "target_bounds"}
#: Records of which neighbors are asked, and of which a metric is learned.
MEMORY = 25, 40


def _begun(kind):
    """Those for numbers know the magnitude of all targets, which else is told by the first or, later, the last."""
    experts = kind(RIDGE, DRIFTS, *TREES, Memory(*MEMORY))
    experts.begin(D, L - 1, 2 if kind is LabelExperts else 1, L - 1)
    if kind is NumberExperts:
        experts.magnitudes[:] = MAGNITUDES
    return experts


def _taught(kind, n=0):
    """Experts that learned the first n records of a stream, in one call, and the stream."""
    rng = np.random.default_rng(0)
    Phi, y = rng.normal(size=(60, D)), rng.integers(0, 2, size=60)
    Phi[:, D - L] = 1
    values = np.ascontiguousarray(Phi[:, D - L + 1 :])
    stream = (
        Phi,
        values.astype(np.float32),
        values,
        y if kind is LabelExperts else Phi[:, 0] + y,
        rng.uniform(0.5, 2, size=60),
    )
    experts = _begun(kind)
    learn_columns(experts, *(part[:n] for part in stream))
    return experts, stream


@pytest.mark.parametrize("kind", [LabelExperts, NumberExperts])
def test_records_that_come_again_teach_fresh_heads_what_they_taught(kind):
    """To the bit, and the heads alone: linear experts, trees, memory and mixture have heard them already."""
    once, (Phi, X, values, y, w) = _taught(kind, 60)
    again, other = _taught(kind, 45)[0], _begun(kind)
    again.exchange_heads(again.fresh_heads())
    if kind is NumberExperts:
        again.magnitudes[:] = MAGNITUDES
    before = again.state()
    # A weight of 0 leaves a record out, whatever it says.
    again.replay(np.insert(Phi, 7, 1e9, axis=0), np.insert(y, 7, 1), np.insert(w, 7, 0))
    other.replay(Phi, y, w)
    after = again.state()
    heads = {"heads_P", "heads_W", "heads_late"} | (SCALES if kind is NumberExperts else set())
    for name, taught in once.state().items():
        expected = taught if name in heads else before[name]
        assert after[name].tobytes() == expected.tobytes(), name
        assert name not in heads or other.state()[name].tobytes() == taught.tobytes(), name
    # And what they say next, of which some is deferred, as if they had never been forgotten.
    assert learn_columns(again, *(part[:9] for part in (Phi, X, values, y, w))).shape[0] == 9
    learn_columns(once, *(part[:9] for part in (Phi, X, values, y, w)))
    assert all(again.state()[name].tobytes() == once.state()[name].tobytes() for name in heads)
