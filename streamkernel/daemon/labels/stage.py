"""The stage of a source whose labels come late: a join that says when a record is predicted and when it is learned."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from streamkernel.connectors.ports import Fault, Label, Record
from streamkernel.daemon.base.counts import LabelCounts
from streamkernel.daemon.base.events import LabelRecord, Prediction
from streamkernel.daemon.base.model import lagging, n_lags
from streamkernel.daemon.labels.decision import Decision, LabelStatus
from streamkernel.daemon.labels.join import LabelJoin
from streamkernel.daemon.labels.keys import key_of
from streamkernel.daemon.stream.challengers import Challengers
from streamkernel.daemon.stream.dead_letter_rate import DeadLetterRate
from streamkernel.daemon.stream.learner import Learner
from streamkernel.daemon.stream.record_batch import LabelChunk, Labeled, RecordBatch
from streamkernel.estimators.base import AdvanceResult

__all__ = ["JoinStage"]

_PREDICTED = frozenset(
    {LabelStatus.LABELED, LabelStatus.KEYLESS, LabelStatus.REPEATED, LabelStatus.KEPT, LabelStatus.MET}
)
_COUNTED = {
    LabelStatus.KEYLESS: ("keyless",),
    LabelStatus.REPEATED: ("repeated",),
    LabelStatus.KEPT: ("kept",),
    LabelStatus.MET: ("kept", "matched"),
    LabelStatus.MATCHED: ("matched",),
    LabelStatus.DOUBLED: ("doubled",),
    LabelStatus.UNMATCHED: ("unmatched",),
    LabelStatus.EARLY: ("early",),
}


class JoinStage:
    """Joins records and late labels: a record is predicted when it comes, and learned when its label does.

    Decisions are made record by record, and what follows one that the model refuses is decided after the refusal: the
    join is taken back to there.

    Parameters
    ----------
    join
        What waits; kept up to date.
    learner
        The model, asked for the loss of predictions whose label came later.
    rate
        Watches the share of dead letters among the labels.
    challengers
        The models next to it, asked for the loss of theirs.

    """

    def __init__(self, join: LabelJoin, learner: Learner, rate: DeadLetterRate, challengers: Challengers) -> None:
        self.join = join
        self.learner = learner
        self._rate = rate
        self._challengers = challengers
        self._given_up = LabelCounts()
        self._decisions: list[Decision] = []

    @property
    def taken(self) -> int:
        return self.join.counts.taken

    def begin(self, records: Sequence[Record]) -> list[tuple[Record, str | None]]:
        self._given_up = self.join.begin_chunk()
        return [(record, key_of(record.x.pop(self.join.key, None))) for record in records]

    def fill(self, batch: RecordBatch, items: Sequence[tuple[Record, str | None]]) -> None:
        join = self.join
        join.undo.forget()
        self._keep_lags()
        batch.late, self._given_up = LabelChunk(self._given_up), LabelCounts()
        batch.labeled[""].probabilities = []
        self._decisions = []
        batch.records = [record for record, _ in items]
        rows: list[tuple[dict[str, Any], Label | None, bool, tuple[Label, ...]]] = []
        for record, key in items:
            decision = join.decide(record, key, len(rows))
            self._decisions.append(decision)
            rows += decision.rows
        batch.inputs, batch.targets = [x for x, *_ in rows], [y for _, y, *_ in rows]
        batch.wanted = [predict for _, _, predict, _ in rows]
        batch.until_refused = True
        batch.lags = [lags for *_, lags in rows] if join.n_lags and join.learn else None

    def settle(self, batch: RecordBatch) -> None:
        decisions = self._decisions
        # Only the last row done may have been refused.
        n_rows = len(batch.result.predictions) - len(batch.refused)
        unsettled = (place for place, one in enumerate(decisions) if one.row + len(one.rows) > n_rows)
        batch.n_taken = next(unsettled, len(decisions))
        if batch.n_taken < len(decisions):
            self.join.undo.take_back(decisions[batch.n_taken].mark)
        self._commit(decisions[: batch.n_taken], batch)
        if batch.refused:
            row, fault = next(iter(batch.refused.items()))
            self._refuse(decisions[batch.n_taken], row, fault, batch)
            batch.n_taken += 1
        batch.counts.predicted = len(batch.predicted)
        self._close(batch)

    def quarantine(self, batch: RecordBatch, record: Record, fault: Fault) -> None:
        self._add_dead(batch, record, fault)
        self._close(batch)

    def _add_dead(self, batch: RecordBatch, record: Record, fault: Fault) -> None:
        """Count a record or a label that the model does not take, and make a dead letter of it."""
        decision = Decision(record, None, 0, 0, LabelStatus.DEAD, fault=fault)
        self._count(decision, batch)
        self._dead_letter(decision, batch)

    def _close(self, batch: RecordBatch) -> None:
        """End a batch: add it to the counts of the join."""
        late = _late(batch)
        batch.counts.unlabeled = late.counts.keyless + late.counts.repeated
        # Whether a model gives probabilities shows in its predictions.
        for labeled in batch.labeled.values():
            if labeled.probabilities is not None and None in labeled.probabilities:
                labeled.probabilities = None
        overrun = [self._rate.add(self.join.counts.taken + number) for number in late.dead_numbers]
        late.overrun = any(overrun)
        self.join.counts.add(late.counts)
        self.join.recent_dead = self._rate.recent

    def rows(self, record: Record) -> list[tuple[dict[str, Any], Label | None]]:
        x = {name: value for name, value in record.x.items() if name != self.join.key}
        decision = self.join.decide(record._replace(x=x), key_of(record.x.get(self.join.key)), 0)
        self.join.undo.take_back(decision.mark)
        return [(inputs, y) for inputs, y, *_ in decision.rows]

    def to_json(self) -> dict[str, int]:
        return self.join.to_json()

    def _keep_lags(self) -> None:
        """Let the join keep as many lags as a model wants, and begin with what such a model knows, if with nothing."""
        learners = [self.learner, *self._challengers.learners.values()]
        wanting = max((learner.model for learner in learners), key=n_lags)
        known: list[Label] = []
        if (one := lagging(wanting)) is not None and self.join.known is None:
            known = [y for y in one.with_lags({}).values() if y is not None]
        self.join.keep_lags(n_lags(wanting), known)

    def _refuse(self, decision: Decision, row: int, fault: Fault, batch: RecordBatch) -> None:
        """Deal with the record or label that the model refused; the decision on it was taken back."""
        record, key = decision.record, decision.key
        if row == decision.row:
            self._add_dead(batch, record, fault)
            return
        # A record whose label waited: it got its prediction, and the label is refused. It waits for another one.
        assert key is not None
        early = self.join.waiting.pop(key)
        assert early is not None
        again = Decision(record, key, 0, decision.row)
        self.join.keep(again)
        self._commit([again], batch)
        # The text of the label is gone: a line that says the same is written.
        batch.add_label_letter(early.position, fault, self.join.written(early, key))

    def _commit(self, decisions: Sequence[Decision], batch: RecordBatch) -> None:
        """Count and score what the model took, and store predictions with the records that wait."""
        predicted, rows = list(batch.predicted), list(batch.rows or ())
        for decision in decisions:
            self._count(decision, batch)
            if decision.status is LabelStatus.DEAD:
                self._dead_letter(decision, batch)
                continue
            if decision.status in _PREDICTED:
                rows.append(decision.row)
                predicted.append(decision.record)
            if decision.status in _PREDICTED:
                results = {self._challengers.published: batch.result, **batch.others}
                decision.named = {name: _prediction_at(decision.row, one) for name, one in results.items()}
            if decision.status is LabelStatus.KEPT and decision.pending is not None:
                decision.pending.named = decision.named
            elif decision.status is LabelStatus.MATCHED and decision.pending is not None:
                _late(batch).delay = self.join.now - decision.pending.arrived
            if decision.y is not None:
                self._score(decision, batch)
        for decision in decisions:
            if decision.status is LabelStatus.KEPT and decision.key is not None:
                self.join.pack(decision.key)
        batch.predicted, batch.rows = predicted, rows

    def _count(self, decision: Decision, batch: RecordBatch) -> None:
        """Count a record or a label, and note where its source continues and which source is next."""
        late, following = _late(batch), decision.record.next
        of_labels = isinstance(decision.record, LabelRecord)
        if of_labels:
            late.counts.taken += 1
            late.next = following
            self.join.positions[following.partition] = following
        else:
            batch.counts.consumed += 1
            batch.next = following
        self.join.label_next = not of_labels
        if decision.status is LabelStatus.SKIPPED:
            (late.counts if of_labels else batch.counts).skipped += 1
        for name in _COUNTED.get(decision.status, ()):
            setattr(late.counts, name, getattr(late.counts, name) + 1)
        if decision.status is LabelStatus.LABELED and decision.early is not None:
            late.counts.doubled += 1
        late.counts.expired += len(decision.expired)
        late.counts.unmatched += decision.n_dropped

    def _score(self, decision: Decision, batch: RecordBatch) -> None:
        """Add a target and the predictions for it to what the report metrics compare, of one model or several."""
        y, join = decision.y, self.join
        named = decision.named or (decision.pending and decision.pending.named) or {}
        assert y is not None
        batch.counts.learned += 1
        if join.learn and self.learner.of_numbers:
            join.moments = join.moments.after(float(y))
        deviation, challengers = join.moments.deviation, self._challengers
        # After a promotion, another model may have been published when the record came.
        own = named.get(challengers.published) or next(iter(named.values()), Prediction(None))
        loss = partial(self.learner.loss, y, own, deviation)
        self._add_score(decision, own, batch.result, batch.labeled[""], loss)
        for name in list(challengers.learners):
            other = named.get(name, Prediction(None))
            labeled = batch.labeled.setdefault(name, Labeled(probabilities=[]))
            loss = partial(challengers.loss, name, y, other, deviation)
            self._add_score(decision, other, batch.others.get(name), labeled, loss)

    def _add_score(
        self,
        decision: Decision,
        prediction: Prediction,
        result: AdvanceResult | None,
        labeled: Labeled,
        loss_of_earlier: Callable[[], float],
    ) -> None:
        """Add a target and its prediction to those of a model, and its loss if the model learns."""
        y = decision.y
        assert y is not None
        assert labeled.probabilities is not None
        if prediction.label is not None:  # a record before the first label has none
            labeled.targets.append(y)
            labeled.predictions.append(prediction.label)
            labeled.probabilities.append(prediction.probabilities)
        if not self.join.learn:
            return
        now = decision.status is LabelStatus.LABELED and result is not None
        loss = float(result.losses[decision.row]) if now and result is not None else loss_of_earlier()
        probabilities = None if prediction.probabilities is None else [prediction.probabilities]
        labeled.add_losses([loss], [y], [prediction.label], probabilities)

    def _dead_letter(self, decision: Decision, batch: RecordBatch) -> None:
        """Make a dead letter of a record or a label that was counted."""
        record, fault = decision.record, decision.fault
        assert fault is not None
        if isinstance(record, LabelRecord):
            batch.add_label_letter(record.position, fault, record.raw)
        else:
            batch.add_dead_letter(record, fault, batch.counts.consumed)


def _late(batch: RecordBatch) -> LabelChunk:
    assert batch.late is not None
    return batch.late


def _prediction_at(row: int, result: AdvanceResult) -> Prediction:
    given = None if result.probabilities is None else result.probabilities[row]
    return Prediction(result.predictions[row], given)
