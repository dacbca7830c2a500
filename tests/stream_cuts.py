"""A stream taken in calls of any kind and length, and what is predicted in each."""

import math
from dataclasses import dataclass
from typing import Any

import pandas as pd
import polars as pl
from hypothesis import strategies as st


@st.composite
def cuts(draw):
    """How a stream is taken: a list of (kind of call, number of records), repeated until the stream ends."""
    kinds = st.sampled_from(["advance", "learn_one", "pandas", "polars"])
    return draw(st.lists(st.tuples(kinds, st.integers(1, 120)), min_size=1, max_size=6))


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
            assert self.deviations[i] == other.deviations[i], i
            assert loss == other.losses[i] or (math.isnan(loss) and math.isnan(other.losses[i])), i


def frame_of(make, rows):
    names = list(dict.fromkeys(name for row in rows for name in row))
    return make({name: [row.get(name) for row in rows] for name in names or ["absent"]})


def _take(model, case, kind, part, results):
    xs, ys, ws = case.xs[part], case.ys[part], case.ws[part]
    if kind == "advance":
        results.add(model.advance(xs, ys, ws))
        return
    if kind == "learn_one" or not any(xs):
        for x, y, w in zip(xs, ys, ws, strict=True):
            model.learn_one(x, y, w=w)
    else:
        model.learn_many(frame_of(pd.DataFrame if kind == "pandas" else pl.DataFrame, xs), ys, ws)
    results.skip(len(xs))


def in_cuts(model, case, cut, start=0, results=None):
    results = results or Results.nothing()
    i = 0
    while start < len(case.xs):
        kind, n = cut[i % len(cut)]
        part = slice(start, start + n)
        _take(model, case, kind, part, results)
        start += n
        i += 1
    return results


def in_single_calls(model, case, start=0):
    results = Results.nothing()
    for part in range(start, len(case.xs)):
        results.add(model.advance([case.xs[part]], [case.ys[part]], [case.ws[part]]))
    return results


def assert_any_cut(case, cut):
    one, other = case.fresh(), case.fresh()
    expected = in_single_calls(one, case)
    in_cuts(other, case, cut).assert_same(expected)
    assert other.state_digest() == one.state_digest()
