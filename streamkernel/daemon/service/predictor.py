"""Predicts with the newest checkpoint of another run: one thread for the model, one that looks for newer ones."""

from __future__ import annotations

import asyncio
import logging
import queue
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from connectors.ports import Fault
from streamkernel.daemon.base.errors import CheckpointError, UnfitError
from streamkernel.daemon.checkpoints.reader import CheckpointReader
from streamkernel.daemon.config.plan import Plan
from streamkernel.daemon.monitoring.trained_metrics import TrainedMetrics
from streamkernel.daemon.recovery.trained import TrainedModel
from streamkernel.daemon.stream.learned import Learned
from streamkernel.daemon.stream.learner import Learner
from streamkernel.daemon.wiring.processor import make_learner

__all__ = ["NoModelError", "Predictor"]

_log = logging.getLogger(__name__)

_MOST_ROWS = 256  # predicted at once: a request waits for no more of others


class NoModelError(Exception):
    """There is no model yet; the message says why."""


@dataclass(frozen=True)
class _Model:
    trained: TrainedModel
    learner: Learner


class _Asked(NamedTuple):
    rows: Sequence[Mapping[str, Any]]
    answer: asyncio.Future[list[dict[str, Any] | Fault]]
    loop: asyncio.AbstractEventLoop


class Predictor:
    """Answers with the newest model there is, from `start` until it is closed.

    Parameters
    ----------
    plan
        The configuration, in mode predict.
    reader
        Of the checkpoints.
    seconds
        How often to look for a newer one.
    metrics
        Which model predicts, and what became of newer ones.

    """

    def __init__(
        self, plan: Plan, reader: CheckpointReader[TrainedModel], seconds: float, metrics: TrainedMetrics
    ) -> None:
        self._plan = plan
        self._reader = reader
        self._seconds = seconds
        self._metrics = metrics
        self._model: _Model | None = None
        self._said = "no checkpoint was looked for yet"
        self._queue: queue.SimpleQueue[_Asked | None] = queue.SimpleQueue()
        self._started = False
        self._ended = threading.Event()
        self._threads = [
            threading.Thread(target=target, name=name, daemon=True)
            for target, name in ((self._answer, "predict"), (self._reload, "reload"))
        ]

    def start(self) -> None:
        """Take the newest model, and begin to answer; where there is none yet, it is waited for.

        Raises
        ------
        CheckpointError
            Where the newest checkpoint is sound and cannot be used.

        """
        self.look()
        self._started = True
        for thread in self._threads:
            thread.start()

    @property
    def obstacle(self) -> str | None:
        """Why nothing can be predicted yet; None where it can."""
        return self._said if self._model is None else None

    @property
    def label_key(self) -> str | None:
        """The field that joined late labels for the model, which is no input."""
        return None if self._model is None else self._model.trained.label_key

    async def predict(self, rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any] | Fault]:
        """Return for each row its answer, or why the model cannot take it.

        Raises
        ------
        NoModelError
            Where there is no model yet.

        """
        if self._model is None:
            raise NoModelError(self._said)
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[list[dict[str, Any] | Fault]] = loop.create_future()
        self._queue.put(_Asked(rows, answer, loop))
        return await answer

    def close(self) -> None:
        """Stop; closing twice does nothing."""
        self._ended.set()
        self._queue.put(None)
        for thread in self._threads:
            if thread.is_alive():
                thread.join()

    def look(self) -> None:
        """Take over a newer model, where there is one.

        Raises
        ------
        CheckpointError
            Where one cannot be used, though it should.

        """
        try:
            trained = self._reader.newer() if self._model is not None else self._reader.newest()
        except CheckpointError as error:
            first = str(error) != self._said
            self._said = str(error)
            if self._model is not None:
                self._metrics.failed()
                if first:
                    _log.error("%s; predictions go on with the checkpoint before", error)
            elif isinstance(error, UnfitError) and not self._started:
                raise  # an older one would fit no better, and who starts it is there to read why
            elif first:
                _log.warning("%s; it is waited for", error)
            return
        self._said = ""
        if trained is not None:
            self._take(trained)

    def _take(self, trained: TrainedModel) -> None:
        learner = make_learner(self._plan, trained.model, trained.inputs, trained.target_moments)
        if self._model is None:
            self._metrics.set(trained)
        else:
            self._metrics.reloaded(trained)
        self._model = _Model(trained, learner)
        _log.info("predicting with %s", trained.describe())

    def _reload(self) -> None:
        while not self._ended.wait(self._seconds):
            try:
                self.look()
            except Exception:
                _log.exception("the look for a newer checkpoint failed")

    def _answer(self) -> None:
        while (first := self._queue.get()) is not None:
            group, last = self._more(first)
            self._predict(group)
            if last:
                return

    def _more(self, first: _Asked) -> tuple[list[_Asked], bool]:
        """Return the requests that wait, as far as they are predicted at once, and whether they are the last."""
        group, n_rows = [first], len(first.rows)
        while n_rows < _MOST_ROWS:
            try:
                one = self._queue.get_nowait()
            except queue.Empty:
                break
            if one is None:
                return group, True
            group.append(one)
            n_rows += len(one.rows)
        return group, False

    def _predict(self, group: Sequence[_Asked]) -> None:
        model = self._model
        assert model is not None
        rows = [row for one in group for row in one.rows]
        try:
            learned = model.learner.advance(rows, [None] * len(rows))
            answers = _answers(learned, model.trained.checkpoint, model.trained.name if self._plan.models else "")
        except Exception as error:
            for one in group:
                one.loop.call_soon_threadsafe(_fail, one.answer, error)
            return
        at = 0
        for one in group:
            one.loop.call_soon_threadsafe(_resolve, one.answer, answers[at : at + len(one.rows)])
            at += len(one.rows)


def _answers(learned: Learned, checkpoint: int, model: str = "") -> list[dict[str, Any] | Fault]:
    """Return what is answered for each row: prediction, probabilities or deviation, and the checkpoint that says it.

    Of several models, also the name of the one that says it.
    """
    result = learned.result
    answers: list[dict[str, Any] | Fault] = []
    for place, prediction in enumerate(result.predictions):
        if place in learned.refused:
            answers.append(Fault(*learned.refused[place]))
            continue
        answer = {"prediction": prediction}
        if result.probabilities is not None:
            answer["probabilities"] = result.probabilities[place]
        if result.deviations is not None:
            answer["std"] = float(result.deviations[place])
        answer["checkpoint"] = checkpoint
        if model:
            answer["model"] = model
        answers.append(answer)
    return answers


def _resolve(future: asyncio.Future[list[dict[str, Any] | Fault]], answers: list[dict[str, Any] | Fault]) -> None:
    if not future.done():  # its client is gone
        future.set_result(answers)


def _fail(future: asyncio.Future[list[dict[str, Any] | Fault]], error: Exception) -> None:
    if not future.done():
        future.set_exception(error)
