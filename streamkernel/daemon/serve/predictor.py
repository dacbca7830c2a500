"""Predicts with the newest checkpoint of another run, in the event loop; a thread looks for newer ones.

What concurrent requests ask for is predicted together, once in a turn of the loop. To hand one record to a thread and
take back the answer would cost more than the prediction, which holds the interpreter in either.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import threading
import time
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from streamkernel.connectors.ports import Fault
from streamkernel.daemon.base.errors import CheckpointError, UnfitError
from streamkernel.daemon.checkpoints.reader import CheckpointReader
from streamkernel.daemon.config.plan import Plan
from streamkernel.daemon.monitoring.exporter import TrainedCounts
from streamkernel.daemon.run_state.learners import make_learner
from streamkernel.daemon.run_state.trained import TrainedModel
from streamkernel.daemon.serve.group_commit import settle
from streamkernel.daemon.stream.known_inputs import ENOUGH, KnownInputs
from streamkernel.daemon.stream.learner import Learner
from streamkernel.daemon.stream.record_batch import RecordBatch

__all__ = ["NoModelError", "Predictor"]

_log = logging.getLogger(__name__)

# Of a turn of the loop, for other requests to be read and answered in between: how long it may take, and how many rows
# it has until it is known how long they take.
_TURN_SECONDS, _FIRST_ROWS, _MOST_ROWS = 0.002, 16, 256


class NoModelError(Exception):
    """There is no model yet; the message says why."""


@dataclass(frozen=True)
class _Model:
    trained: TrainedModel
    learner: Learner
    known: KnownInputs | None


@dataclass(slots=True)
class _Asked:
    """What a request asks for, and as much of it as was predicted."""

    rows: Sequence[Mapping[str, Any]]
    answer: asyncio.Future[list[dict[str, Any] | Fault]]
    predicted: list[dict[str, Any] | Fault] = field(default_factory=list)


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
        self, plan: Plan, reader: CheckpointReader[TrainedModel], seconds: float, metrics: TrainedCounts
    ) -> None:
        self._plan = plan
        self._reader = reader
        self._seconds = seconds
        self._metrics = metrics
        self._model: _Model | None = None
        self._said = "no checkpoint was read yet"
        self._waiting: deque[_Asked] = deque()
        self._turn_due = False
        self._turn_rows = _FIRST_ROWS
        self._sample: Mapping[str, Any] = {}
        # The names in the first rows; None where they were compared with the inputs of the model.
        self._names: dict[str, None] | None = {}
        self._n_rows = 0
        self._started = False
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._reload, name="reload", daemon=True)

    def start(self) -> None:
        """Take the newest model, and begin to answer; where there is none yet, it is waited for.

        Raises
        ------
        CheckpointError
            Where the newest checkpoint is sound and cannot be used.

        """
        self.look()
        self._started = True
        self._thread.start()

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
        asked = _Asked(rows, loop.create_future())
        self._waiting.append(asked)
        if not self._turn_due:
            self._turn_due = True
            loop.call_soon(self._turn, loop)
        return await asked.answer

    def close(self) -> None:
        """Stop to look for newer models; closing twice does nothing."""
        self._ended.set()
        if self._thread.is_alive():
            self._thread.join()

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
                self._metrics.n_failures += 1
                if first:
                    _log.error("%s; predictions continue with the previous checkpoint", error)
            elif isinstance(error, UnfitError) and not self._started:
                raise  # an older one would fit no better, and who starts it is there to read why
            elif first:
                _log.warning("%s; waiting for it", error)
            return
        self._said = ""
        if trained is not None:
            self._take(trained)

    def _take(self, trained: TrainedModel) -> None:
        learner = make_learner(self._plan, trained.restored)
        # What a model computes at its first prediction, and compiles at the first of a process, holds up no request.
        with contextlib.suppress(Exception):
            learner.advance(RecordBatch(inputs=[self._sample], targets=[None]))
        self._metrics.take(trained)
        # Reloads may come each second: answers and metrics say which model it is.
        _log.log(logging.INFO if self._model is None else logging.DEBUG, "predicting with %s", trained.describe())
        self._model = _Model(trained, learner, trained.known_inputs())

    def _reload(self) -> None:
        while not self._ended.wait(self._seconds):
            try:
                self.look()
            except Exception:
                _log.exception("looking for a newer checkpoint failed")

    def _turn(self, loop: asyncio.AbstractEventLoop) -> None:
        """Predict some of the rows that wait, and answer the requests that are complete."""
        chosen: list[tuple[_Asked, int]] = []  # requests, and how many rows of each
        rows: list[Mapping[str, Any]] = []
        for asked in self._waiting:
            part = asked.rows[len(asked.predicted) : len(asked.predicted) + self._turn_rows - len(rows)]
            chosen.append((asked, len(part)))
            rows += part
            if len(rows) == self._turn_rows:
                break
        try:
            answers = self._predicted(rows)
        except Exception as error:
            for _ in chosen:
                settle(self._waiting.popleft().answer, error)
        else:
            at = 0
            for asked, n_rows in chosen:
                asked.predicted += answers[at : at + n_rows]
                at += n_rows
                if len(asked.predicted) == len(asked.rows):
                    settle(self._waiting.popleft().answer, asked.predicted)
        self._turn_due = bool(self._waiting)
        if self._turn_due:
            loop.call_soon(self._turn, loop)

    def _predicted(self, rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any] | Fault]:
        model = self._model
        assert model is not None
        began = time.perf_counter()
        batch = model.learner.advance(RecordBatch(inputs=rows, targets=[None] * len(rows)))
        took = time.perf_counter() - began
        self._sample = rows[-1]
        self._turn_rows = max(1, min(_MOST_ROWS, int(len(rows) * _TURN_SECONDS / max(took, 1e-9))))
        answers = _answers(batch, model.trained.checkpoint, model.trained.name if self._plan.published else "")
        if model.known is not None:
            self._compare(model.known, rows, answers)
        return answers

    def refusal(self, row: Mapping[str, Any]) -> Fault | None:
        """Return why a row has too few inputs that the model has learned; None if it has enough, or without a model."""
        known = None if self._model is None else self._model.known
        why = None if known is None else known.refusal(row, self._plan.config.limits.min_known_inputs)
        return None if why is None else Fault("refused", f"{why}: rename them")

    def _compare(
        self, known: KnownInputs, rows: Sequence[Mapping[str, Any]], answers: list[dict[str, Any] | Fault]
    ) -> None:
        """Refuse rows with too few inputs that the model has learned; log once how those of the first rows differ."""
        for place, row in enumerate(rows):
            answers[place] = self.refusal(row) or answers[place]
        if self._names is None:
            return
        for row in rows:
            self._names.update(dict.fromkeys(row))
        self._n_rows += len(rows)
        if self._n_rows >= ENOUGH or known.unknown(self._names):
            if (difference := known.difference(self._names)) is not None:
                _log.warning("/predict: %s (in the first %d records)", difference, self._n_rows)
            self._names = None


def _answers(batch: RecordBatch, checkpoint: int, model: str = "") -> list[dict[str, Any] | Fault]:
    """Return what is answered for each row: prediction, probabilities or deviation, and the checkpoint that says it.

    Of several models, also the name of the one that says it.
    """
    result = batch.result
    answers: list[dict[str, Any] | Fault] = []
    for place, prediction in enumerate(result.predictions):
        if place in batch.refused:
            answers.append(batch.refused[place])
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
