"""A model that raises in the middle of a chunk: what it predicted before is there once, however the stream is cut."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from river import dummy, preprocessing
from river.base import Classifier

from streamkernel import KernelClassifier, WindowRefit
from streamkernel.daemon.base.model import has_own_parts
from streamkernel.daemon.stream.challengers import Challengers, ModelStatus
from streamkernel.daemon.stream.record_batch import RecordBatch
from streamkernel.daemon.stream.river_learner import learner_for
from streamkernel.finite import NotFiniteError
from streamkernel.kernels import Gaussian
from streamkernel.losses import Log, Softmax
from streamkernel.window import Exact

RECORDS = 60
FAILS_AT = 47
BATCH = 6


class Failing(Softmax):
    """Fails where a record of that number is among those learned."""

    def __init__(self, error: str = "memory") -> None:
        self.error = error

    def gradient(self, y_true: Any, y_pred: Any) -> Any:
        if (y_true == 2).any():
            raise {"memory": MemoryError, "finite": NotFiniteError, "value": ValueError}[self.error]("full")
        return super().gradient(y_true, y_pred)


class Mine(Gaussian):
    """A kernel of the user's."""


class FailingModel(Classifier):
    def __init__(self, error: BaseException) -> None:
        self.error = error
        self.shown = 0

    def learn_one(self, x: Any, y: Any) -> None:  # noqa: ARG002
        self.shown += 1
        if y == "c":
            raise self.error

    def predict_proba_one(self, x: Any, **_: Any) -> Any:  # noqa: ARG002
        return {"a": 1 / (2 + self.shown), "b": 1 - 1 / (2 + self.shown)}


def stream() -> tuple[list[dict[str, float]], list[str]]:
    draw = np.random.default_rng(0)
    xs = [{"a": draw.normal(), "b": draw.normal()} for _ in range(RECORDS)]
    ys = ["a" if x["a"] * x["b"] > 0 else "b" for x in xs]
    ys[FAILS_AT] = "c"
    return xs, ys


def through(model: Any, cuts: Sequence[int]) -> tuple[list[Any], list[Any], list[float], ModelStatus]:
    """Take a challenger through the stream in chunks, and return what it predicted of each record."""
    xs, ys = stream()
    statuses = {"published": ModelStatus(), "other": ModelStatus()}
    challengers = Challengers("published", statuses, {"other": learner_for(model)}, 0.5, 100)
    labels, probabilities, losses = [], [], []
    for start, stop in zip([0, *cuts], [*cuts, RECORDS], strict=True):
        batch = RecordBatch(inputs=xs[start:stop], targets=ys[start:stop])
        learner_for(dummy.NoChangeClassifier()).advance(batch)
        challengers.advance(batch, 0.0)
        one = batch.others.get("other")
        labels += [None] * (stop - start) if one is None else one.predictions
        probabilities += [{}] * (stop - start) if one is None else one.probabilities or [{}] * (stop - start)
        losses += [math.nan] * (stop - start) if one is None else one.losses.tolist()
    return labels, probabilities, losses, statuses["other"]


def own_loss(error: str) -> KernelClassifier:
    return KernelClassifier(seed=1, max_features=64, batch_size=BATCH, loss=Failing(error))


@pytest.mark.parametrize(
    "make",
    [
        lambda: FailingModel(MemoryError("full")),
        lambda: FailingModel(SystemExit(3)),
        lambda: own_loss("memory"),
        lambda: own_loss("finite"),
        lambda: preprocessing.StandardScaler() | own_loss("finite"),
    ],
    ids=["memory", "exit", "own loss", "own loss, not finite", "in a pipeline"],
)
def test_predictions_before_it_are_there_once_however_the_stream_is_cut(make: Any) -> None:
    results = [through(make(), cuts) for cuts in ([], [20, 41], [47], [48], range(1, RECORDS))]
    for labels, probabilities, losses, status in results:
        assert repr((labels, probabilities, losses)) == repr(results[0][:3])
        n_predicted = RECORDS - probabilities[::-1].index(next(one for one in probabilities[::-1] if one))
        # The loss is asked at the end of a mini-batch, the model at the record itself.
        assert n_predicted == status.shown == FAILS_AT
        assert status.disabled


def test_such_a_loss_of_the_published_model_is_learned_once_too() -> None:
    xs, ys = stream()
    digests = []
    for cuts in ([], [20, 41], range(1, RECORDS)):
        model = own_loss("value")
        learner = learner_for(model)
        n_refused = 0
        for start, stop in zip([0, *cuts], [*cuts, RECORDS], strict=True):
            n_refused += len(learner.advance(RecordBatch(inputs=xs[start:stop], targets=ys[start:stop])).refused)
        digests.append((n_refused, model.state_digest()))
    assert digests == [(1, digests[0][1])] * 3


@pytest.mark.parametrize("error", [MemoryError("full"), SystemExit(3)])
def test_of_the_published_model_it_is_raised(error: BaseException) -> None:
    xs, ys = stream()
    with pytest.raises(type(error)):
        learner_for(FailingModel(error)).advance(RecordBatch(inputs=xs, targets=ys))
    caught = learner_for(FailingModel(error)).advance(RecordBatch(inputs=xs, targets=ys), catch=True)
    assert caught.failure is error
    assert len(caught.result.predictions) == FAILS_AT


def test_parts_of_the_users_own_are_known() -> None:
    assert has_own_parts(own_loss("value"))
    assert not has_own_parts(KernelClassifier(loss=Softmax()))
    assert has_own_parts(KernelClassifier(kernel=Mine() + Gaussian()))
    assert has_own_parts(WindowRefit(KernelClassifier(kernel=Mine(), max_features=64)))
    assert not has_own_parts(WindowRefit(KernelClassifier(kernel=Gaussian(), max_features=64), solver=Exact()))
    assert not has_own_parts(KernelClassifier(loss=Log()))
    assert not has_own_parts(FailingModel(MemoryError()))
