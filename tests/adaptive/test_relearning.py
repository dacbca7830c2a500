"""A metric that is learned over the records that follow: what comes of it, and that no cut or save changes a bit."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streamkernel import AdaptiveKernelClassifier, AdaptiveKernelRegressor
from streamkernel.adaptive import relearning
from streamkernel.adaptive.features import AdaptiveFeatures
from streamkernel.adaptive.memory import Memory
from streamkernel.adaptive.relearning import Relearning
from streamkernel.adaptive.target_experts import LabelExperts, NumberExperts
from streamkernel.estimators.base import machine_of
from streamkernel.kernels import Gaussian
from streamkernel.state import from_bytes, to_bytes
from tests.adaptive.experts import learn_columns

EXPERTS = pytest.mark.parametrize("kind", [LabelExperts, NumberExperts])
D_IN, F = 4, 8


def _keys(d=D_IN):
    return np.arange(11, 11 + d, dtype=np.uint64)


class _Stream:
    """Columns and experts that learn a stream of rows, record by record."""

    def __init__(self, kind, size=200, buffer=90, d=D_IN):
        self.columns = AdaptiveFeatures(Gaussian(), F, seed=3)
        self.columns.begin(d)
        self.experts = kind(0.1, (0.0, 1e-3), 0, 40, Memory(size, buffer))
        K = 2 if kind is LabelExperts else 1
        self.experts.begin(self.columns.n_columns, self.columns.n_linear, K, d)
        rng = np.random.default_rng(0)
        self.X = rng.normal(size=(400, d)).astype(np.float32)
        wave = np.sin(2 * self.X[:, 1]) + 0.1 * rng.normal(size=400)
        self.y = (wave > 0).astype(np.int64) if kind is LabelExperts else 5 + 3 * wave
        self.w = rng.uniform(0.5, 2, size=400)
        self.n = 0

    def learn(self, n):
        at = slice(self.n, self.n + n)
        X = np.ascontiguousarray(self.X[at, : self.columns.n_inputs])
        Phi = self.columns.of(X, _keys(self.columns.n_inputs))
        learn_columns(self.experts, Phi, X, X.astype(np.float64), self.y[at], self.w[at])
        self.n += n

    def finish(self, learning):
        """Go on until the metric takes effect; how many records that took."""
        before = self.n
        while not learning.step(_keys(self.columns.n_inputs)):
            self.learn(1)
        return self.n - before


@EXPERTS
@pytest.mark.parametrize(("n", "size"), [(1, 200), (60, 200), (90, 200), (90, 0)])
def test_the_heads_are_those_that_let_all_rows_pass_at_once(kind, n, size, monkeypatch):
    """To the bit, those that came meanwhile included; where the ring is too short, but for what it has lost."""
    monkeypatch.setattr(relearning, "WORK", 20_000)
    stream = _Stream(kind, size)
    stream.learn(120)
    learning = Relearning(stream.columns, stream.experts, n)
    waited = stream.finish(learning)
    expected = _Stream(kind, size)
    expected.learn(stream.n)
    scales, bandwidth = stream.columns.scales, stream.columns.bandwidth
    columns = expected.columns.under(scales, bandwidth)
    n_rows = min(n + waited, len(expected.experts.memory))
    X, y, w = expected.experts.memory.rows_from(n_rows, n_rows)
    expected.experts.exchange_heads(expected.experts.fresh_heads())
    if kind is NumberExperts:  # the magnitude of the targets is that of those before the first row passed
        expected.experts.magnitudes[:] = stream.experts.magnitudes
    expected.experts.replay(columns.of(X, _keys()), y, w)
    if size or n + waited <= 90:
        for name, part in expected.experts.state().items():
            assert stream.experts.state()[name].tobytes() == part.tobytes(), name
    else:
        assert np.isfinite(stream.experts.heads.W).all()
    assert waited <= 4 + 2 * math.ceil(n / relearning.LEAST)


@EXPERTS
def test_until_it_is_done_all_goes_on_as_if_it_were_not(kind):
    stream, plain = _Stream(kind), _Stream(kind)
    for each in (stream, plain):
        each.learn(120)
    learning = Relearning(stream.columns, stream.experts, 90)
    while True:
        before, expected = stream.experts.state(), plain.experts.state()
        assert all(before[name].tobytes() == part.tobytes() for name, part in expected.items())
        assert stream.columns.state()["metric_scales"].tolist() == [1.0] * D_IN
        if learning.step(_keys()):
            break
        for each in (stream, plain):
            each.learn(1)
    assert stream.n > 120
    assert stream.columns.state()["metric_scales"].tolist() != [1.0] * D_IN


def test_a_record_does_no_more_than_its_share():
    """At 20 inputs and 7 classes: 8 rows or more, and so few that the processor is done within a millisecond."""
    columns = AdaptiveFeatures(Gaussian(), 128, seed=3)
    columns.begin(20)
    experts = LabelExperts(0.1, (0.0, 1e-3, 3e-2), 0, 40, Memory(0, 1_000))
    experts.begin(columns.n_columns, 20, 7, 20)
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1_000, 20)).astype(np.float32)
    Phi = columns.of(X, _keys(20))
    learn_columns(experts, Phi, X, X.astype(np.float64), rng.integers(0, 7, size=1_000), np.ones(1_000))
    learning, steps = Relearning(columns, experts, 1_000), 1
    while not learning.step(_keys(20)):
        steps += 1
    assert 40 < steps < 1_000 / 8


@EXPERTS
@given(data=st.data())
@settings(max_examples=20)
def test_saved_and_never_saved_go_on_alike(kind, data):
    """With one more input or class somewhere, whichever comes."""
    stream = _Stream(kind)
    stream.learn(100)
    twin = _Stream(kind)
    twin.learn(100)
    work = data.draw(st.sampled_from([5_000, 40_000, 10**9]))
    more = data.draw(st.integers(0, 30))
    save = data.draw(st.integers(0, 30))
    relearning_work, relearning.WORK = relearning.WORK, work
    try:
        told = []
        for each, is_saved in ((stream, True), (twin, False)):
            learning = Relearning(each.columns, each.experts, 70)
            for step in range(200):
                if step == more and kind is LabelExperts:
                    each.experts.add_output()
                    learning.add_output()
                if is_saved and step == save:
                    state = from_bytes(to_bytes(learning.state()))
                    assert Relearning.is_in(state)
                    learning = Relearning.of(state, each.columns, each.experts)
                if learning.step(_keys()):
                    break
                each.learn(1)
            told.append((each.n, each.experts.state(), each.columns.state()))
    finally:
        relearning.WORK = relearning_work
    assert to_bytes({**told[0][1], **told[0][2]}) == to_bytes({**told[1][1], **told[1][2]})
    assert told[0][0] == told[1][0]


@pytest.mark.parametrize("kind", [AdaptiveKernelClassifier, AdaptiveKernelRegressor])
def test_what_is_in_the_making_is_finished_before_the_next_of_the_schedule(kind, monkeypatch):
    monkeypatch.setattr(relearning, "WORK", 1)
    X = np.random.default_rng(0).normal(size=(61, 3))
    xs, ys = [dict(enumerate(row)) for row in X.tolist()], np.sign(X[:, 0]).tolist()
    model = kind(n_features=8, metric_schedule=(60, 61, 90), buffer_size=50, memory=40, n_trees=0, seed=1)
    made = []
    for part in (slice(59), slice(59, 60), slice(60, 61)):
        model.advance(xs[part], ys[part])
        made.append(machine_of(model).core._relearning)
    assert made[0] is None
    assert made[1] is made[2] is not None
