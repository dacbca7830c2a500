"""A stream taken in calls of any kind and length, the model copied between them, and the predictions of each call."""

import math
from dataclasses import dataclass
from typing import Any

import pandas as pd
import polars as pl
from hypothesis import strategies as st

from streamkernel import KernelNoveltyDetector
from tests.laws.copies import COPIES


@st.composite
def cuts(draw):
    """How a stream is taken: a list of (kind of call or copy, number of records), repeated until the stream ends."""
    calls = st.tuples(st.sampled_from(["advance", "learn_one", "pandas", "polars"]), st.integers(1, 120))
    copies = st.tuples(st.sampled_from(list(COPIES)), st.just(0))
    return [draw(calls), *draw(st.lists(calls | copies, max_size=6))]


@dataclass
class Results:
    """Predictions, probabilities, deviations and losses of a stream, each record's; None where the call gives none."""

    predictions: list[Any]
    probabilities: list[Any]
    deviations: list[Any]
    losses: list[Any]

    @classmethod
    def nothing(cls):
        return cls([], [], [], [])

    def add(self, outcome):
        self.predictions += outcome.predictions
        self.probabilities += outcome.probabilities or [None] * len(outcome.predictions)
        none = [None] * len(outcome.predictions)
        self.deviations += none if outcome.deviations is None else outcome.deviations.tolist()
        self.losses += outcome.losses.tolist()

    def skip(self, n):
        for values in (self.predictions, self.probabilities, self.deviations, self.losses):
            values += [None] * n

    def assert_same(self, other):
        """Wherever both have some."""
        for i, loss in enumerate(self.losses):
            if loss is None or other.losses[i] is None:
                continue
            assert self.predictions[i] == other.predictions[i], i
            assert self.probabilities[i] == other.probabilities[i], i
            assert list(self.probabilities[i] or ()) == list(other.probabilities[i] or ()), i
            # NaN before the first target.
            deviation, others = self.deviations[i], other.deviations[i]
            assert deviation == others or (math.isnan(deviation) and math.isnan(others)), i
            assert loss == other.losses[i] or (math.isnan(loss) and math.isnan(other.losses[i])), i


def frame_of(make, rows):
    names = list(dict.fromkeys(name for row in rows for name in row))
    return make({name: [row.get(name) for row in rows] for name in names or ["absent"]})


def _take(model, case, kind, part, results):
    xs, ys, ws = case.xs[part], case.ys[part], case.ws[part]
    if kind == "advance":
        results.add(model.advance(xs, ys, ws))
        return
    without_label = isinstance(model, KernelNoveltyDetector)
    if kind == "learn_one" or not any(xs):
        for x, y, w in zip(xs, ys, ws, strict=True):
            model.learn_one(*([x] if without_label else [x, y]), w=w)
    else:
        X = frame_of(pd.DataFrame if kind == "pandas" else pl.DataFrame, xs)
        model.learn_many(*([X] if without_label else [X, ys]), ws)
    results.skip(len(xs))


def in_cuts(model, case, cut, start=0):
    """The model, or a copy of it, that has learned the rest of the stream, and the results."""
    results = Results.nothing()
    i = 0
    while start < len(case.xs):
        kind, n = cut[i % len(cut)]
        if kind in COPIES:
            model = COPIES[kind](model)
        else:
            _take(model, case, kind, slice(start, start + n), results)
        start += n
        i += 1
    return model, results


def in_single_calls(model, case, start=0):
    results = Results.nothing()
    for part in range(start, len(case.xs)):
        results.add(model.advance([case.xs[part]], [case.ys[part]], [case.ws[part]]))
    return results


def assert_any_cut(case, cut):
    one = case.fresh()
    expected = in_single_calls(one, case)
    other, results = in_cuts(case.fresh(), case, cut)
    results.assert_same(expected)
    assert other.state_digest() == one.state_digest()
