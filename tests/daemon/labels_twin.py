"""Late labels as plain as can be: dicts, loops, one record after the other, and a model that is counted along."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
from river import base

from streamkernel.connectors.ports import Fault, Position, Record
from streamkernel.daemon.base.counts import RecordCounts
from streamkernel.daemon.base.events import LabelRecord
from streamkernel.daemon.labels.join import LabelJoin
from streamkernel.daemon.labels.stage import JoinStage
from streamkernel.daemon.stream.challengers import Challengers
from streamkernel.daemon.stream.dead_letter_rate import DeadLetterRate
from streamkernel.daemon.stream.processor import Processor
from streamkernel.daemon.stream.quality import ProgressiveLoss, Quality
from streamkernel.daemon.stream.river_learner import learner_for
from streamkernel.estimators.base import AdvanceResult


class Counting(base.Classifier):
    """Says how much it has learned; refuses records with a `bad` input, and the label `bad`."""

    def __init__(self) -> None:
        self.learned: list[tuple[dict[str, Any], str]] = []

    @property
    def _multiclass(self) -> bool:
        return True

    def predict_proba_one(self, x: dict[str, Any], **_: Any) -> dict[str, float]:
        if "bad" in x:
            raise ValueError("a bad record")
        if not self.learned:
            return {}
        share = sum(y == "a" for _, y in self.learned) / len(self.learned)
        return {"a": share, "b": 1.0 - share}

    def learn_one(self, x: dict[str, Any], y: str) -> None:
        if y == "bad":
            raise ValueError("a bad label")
        self.learned.append((dict(x), y))


class Advancing(Counting):
    """The same as an estimator of ours is: a call that is refused changes nothing."""

    def advance(self, xs: list[dict[str, Any]], ys: list[str | None]) -> AdvanceResult:
        if any("bad" in x for x in xs) or "bad" in ys:
            raise ValueError("a bad record" if any("bad" in x for x in xs) else "a bad label")
        labels, given, losses = [], [], []
        for x, y in zip(xs, ys, strict=True):
            p = self.predict_proba_one(x)
            labels.append(max(p, key=p.__getitem__) if p else None)
            given.append(p)
            losses.append(math.nan)
            if y is not None:
                losses[-1] = self_loss(p, y)
                self.learn_one(x, y)
        return AdvanceResult(labels, given, np.array(losses))

    def loss_of(self, y: str, prediction: dict[str, float]) -> float:
        return self_loss(prediction, y)


def self_loss(p: dict[str, float], y: str) -> float:
    return -math.log(max(p[y], 1e-15)) if y in p else math.nan


class Twin:
    """What is to come of records and labels, one after the other."""

    def __init__(self, limit: int, model: Counting) -> None:
        self.limit = limit
        self.model = model
        self.pending: dict[str, tuple[dict[str, Any], Any, dict[str, float]]] = {}
        self.waiting: dict[str, tuple[str, int]] = {}
        self.settled: dict[str, bool] = {}
        self.records: Counter[str] = Counter()
        self.labels: Counter[str] = Counter()
        self.lines: list[tuple[int, Any, Any]] = []
        self.letters: list[tuple[str, int, str]] = []
        self.judged: list[tuple[str, Any]] = []

    def take(self, record: Record) -> None:
        x = dict(record.x)
        key = x.pop("id", None)
        if isinstance(record, LabelRecord):
            self._label(record, key)
        else:
            self._record(record, x, key)
        for held in (self.waiting, self.settled):
            while len(held) > self.limit:
                del held[next(iter(held))]
                self.labels["unmatched"] += held is self.waiting

    def _record(self, record: Record, x: dict[str, Any], key: str | None) -> None:
        self.records["consumed"] += 1
        if record.blank:
            self.records["skipped"] += 1
            return
        if record.fault is not None or "bad" in x or record.y == "bad":
            reason = "refused" if record.fault is None else record.fault.reason
            self.records["dead"] += 1
            self.letters.append(("records", record.position.offset, reason))
            return
        p = self.model.predict_proba_one(x)
        label = max(p, key=p.__getitem__) if p else None
        self.records["predicted"] += 1
        self.lines.append((record.position.offset, label, record.y))
        if record.y is not None:
            self._learn(x, str(record.y), label)
            if key is not None and key not in self.pending and key not in self.settled:
                self.labels["doubled"] += self.waiting.pop(key, None) is not None
                self.settled[key] = True
        elif key is None or key in self.pending or key in self.settled:
            self.records["unlabeled"] += 1
            self.labels["keyless" if key is None else "repeated"] += 1
        else:
            self.labels["kept"] += 1
            y, offset = self.waiting.pop(key, (None, 0))
            if y is not None and y != "bad":
                self.labels["matched"] += 1
                self.settled[key] = True
                self._learn(x, y, label)
                return
            self.pending[key] = (x, label, p)
            while len(self.pending) > self.limit:
                oldest = next(iter(self.pending))
                del self.pending[oldest]
                self.settled[oldest] = False
                self.labels["expired"] += 1
            if y == "bad":
                self.labels["dead"] += 1
                self.letters.append(("labels", offset, "refused"))

    def _label(self, record: Record, key: str | None) -> None:
        self.labels["taken"] += 1
        reason = None
        if record.blank:
            self.labels["skipped"] += 1
        elif record.fault is not None:
            reason = record.fault.reason
        elif key is None or record.y is None:
            reason = "key" if key is None else "target"
        elif key in self.pending:
            if record.y == "bad":
                reason = "refused"
            else:
                x, label, _ = self.pending.pop(key)
                self.settled[key] = True
                self.labels["matched"] += 1
                self._learn(x, str(record.y), label)
        elif key in self.settled:
            self.labels["doubled" if self.settled[key] else "unmatched"] += 1
        elif key in self.waiting:
            self.labels["doubled"] += 1
        else:
            self.labels["early"] += 1
            self.waiting[key] = (str(record.y), record.position.offset)
        if reason is not None:
            self.labels["dead"] += 1
            self.letters.append(("labels", record.position.offset, reason))

    def _learn(self, x: dict[str, Any], y: str, predicted: Any) -> None:
        self.records["learned"] += 1
        self.model.learn_one(x, y)
        if predicted is not None:
            self.judged.append((y, predicted))


class NotedQuality(Quality):
    """The report metrics, and what they were given: pairs of a target and the prediction for it."""

    def __init__(self, task: str, names: Sequence[str], window: int) -> None:
        super().__init__(task, names, window)
        self.pairs: list[tuple[Any, Any]] = []

    def add(self, targets: Sequence[Any], predictions: Sequence[Any], probabilities: Sequence[Any] | None) -> None:
        super().add(targets, predictions, probabilities)
        self.pairs += zip(targets, predictions, strict=True)


class Daemon:
    """The real thing in the same terms."""

    def __init__(self, limit: int, model: Counting, join: LabelJoin | None = None) -> None:
        self.model = model
        self.join = join or LabelJoin("id", "y", 3600.0, limit)
        self.quality = NotedQuality("classification", ["accuracy", "log_loss"], 10_000)
        learner = learner_for(model)
        self.processor = Processor(
            learner,
            self.quality,
            ProgressiveLoss(10_000),
            DeadLetterRate(1.0, 10_000),
            RecordCounts(),
            JoinStage(self.join, learner, DeadLetterRate(1.0, 10_000), Challengers()),
        )
        self.lines: list[tuple[int, Any, Any]] = []
        self.letters: list[tuple[str, int, str]] = []

    def take(self, records: list[Record], stop_after: int | None = None) -> int:
        """Take a chunk, of which only a part is done where it is stopped; give how many were."""
        asked = 0

        def stopped() -> bool:
            nonlocal asked
            asked += 1
            return stop_after is not None and asked >= stop_after

        fresh = [record._replace(x=dict(record.x)) for record in records]
        n_taken = 0
        for batch in self.processor.process(fresh, stopped):
            lines = self.processor.lines(batch)
            self.lines += [(line["position"]["offset"], line["prediction"], line["target"]) for line in lines]
            self.letters += [
                (line["position"].get("source", "records"), line["position"]["offset"], line["reason"])
                for line in batch.letters
            ]
            n_taken += batch.taken
        return n_taken

    def agrees_with(self, twin: Twin) -> None:
        late, account = self.join, self.processor.counts
        assert self.model.learned == twin.model.learned
        assert account.to_json() == {name: twin.records[name] for name in account.to_json()}
        assert late.counts.to_json() == {name: twin.labels[name] for name in late.counts.to_json()}
        assert self.lines == twin.lines
        assert self.letters == twin.letters
        assert [key for key, _ in late.pending] == list(twin.pending)
        assert [(key, early.y) for key, early in late.waiting] == [(key, y) for key, (y, _) in twin.waiting.items()]
        assert list(late.settled) == list(twin.settled.items())
        assert self.quality.pairs == twin.judged
        balances(late, account)


def balances(late: LabelJoin, account: RecordCounts) -> None:
    """Every record and every label is accounted for."""
    counts = late.counts
    assert counts.balances(len(late.pending), len(late.waiting))
    at_once = account.learned - counts.matched
    assert account.consumed == account.skipped + account.dead + account.unlabeled + at_once + counts.kept
    assert account.predicted == account.unlabeled + at_once + counts.kept


def event(late: bool, offset: int, key: str | None, y: str | None, kind: str) -> Record:
    """A record or a label of a kind: good, bad (refused by the model), blank or fault."""
    position, following = (Position("labels" if late else "records", 0, number) for number in (offset, offset + 1))
    x: dict[str, Any] = {} if late else {"n": float(offset)}
    if key is not None:
        x["id"] = key
    if kind == "bad":
        x, y = (x, "bad") if late else ({**x, "bad": 1.0}, y)
    record = Record(x, y, position, following, b"raw")
    if kind in ("blank", "fault"):
        fault = Fault("not_json", "why") if kind == "fault" else None
        record = record._replace(x={}, y=None, fault=fault, blank=kind == "blank")
    return LabelRecord(*record) if late else record
