"""The lags of a record whose label comes late: it is learned with those that it was predicted with."""

from __future__ import annotations

import functools
import json
import math
import random
from collections.abc import Callable, Iterable, Sequence
from typing import Any, ClassVar

import pytest

from streamkernel import AdaptiveKernelClassifier, AdaptiveKernelRegressor
from streamkernel.connectors.ports import Position, Record
from streamkernel.daemon.assembly.plan import prepare
from streamkernel.daemon.base.counts import RecordCounts
from streamkernel.daemon.base.errors import OtherFormatError
from streamkernel.daemon.base.events import LabelRecord
from streamkernel.daemon.components.caveats import caveats
from streamkernel.daemon.labels import snapshot
from streamkernel.daemon.labels.join import LabelJoin
from streamkernel.daemon.labels.stage import JoinStage
from streamkernel.daemon.runtime import run
from streamkernel.daemon.stream.challengers import Challengers, ModelStatus
from streamkernel.daemon.stream.dead_letter_rate import DeadLetterRate
from streamkernel.daemon.stream.learner import AdvancingLearner
from streamkernel.daemon.stream.processor import Processor, Scores
from streamkernel.daemon.stream.quality import ProgressiveLoss, Quality
from tests.daemon.conftest import Home
from tests.daemon.labels_stream import outcome, sections, write_pair

SMALL: dict[str, Any] = {"n_features": 8, "n_trees": 0, "memory": 0, "metric_schedule": None, "seed": 1}
#: What happens, in order: a record, its label, or a record that brings its own target.
Happening = tuple[str, int, Any]


def model_of(kind: type, lags: int) -> Any:
    return kind(lags=lags, **SMALL)


def happenings(kind: type, n: int = 110, late: int = 6) -> list[Happening]:
    """A stream whose target goes on from where it was: most labels come late, some with the record, some before it."""
    draw = random.Random(1)
    y, waiting, out = 0.0, [], []
    for number in range(n):
        y = 0.9 * y + draw.gauss(0, 1)
        target = y if kind is AdaptiveKernelRegressor else "abc"[number // 5 % 3]
        if number % 17 == 5:
            out.append(("both", number, target))
        elif number % 19 == 7:
            out += [("label", number, target), ("record", number, None)]
        else:
            out.append(("record", number, None))
            waiting.append(("label", number, target))
        if len(waiting) > late:
            out.append(waiting.pop(0))
    return out


def x_of(number: int) -> dict[str, Any]:
    return {"a": float(number % 7), "b": float(number % 5)}


@functools.cache
def told(kind: type, lags: int) -> tuple[list[Any], str]:
    """What that user is told over the whole stream, and the state that the model is left in."""
    model = model_of(kind, lags)
    return one_by_one(model, happenings(kind), lags), model.state_digest()


def one_by_one(model: Any, stream: Iterable[Happening], n_lags: int, taken: Sequence[Any] = ()) -> list[Any]:
    """As a user of River would do it, who keeps what `with_lags` gives."""
    said, early, kept = [], {}, {}
    for what, number, target in stream:
        if what == "label" and number not in kept:
            early[number] = target
            continue
        if what != "label":
            kept[number] = model.with_lags(x_of(number))
            said.append(model.predict_one(kept[number]))
            target = early.get(number, target)
        if target is not None and target not in taken:
            model.learn_one(kept[number], target)
    assert n_lags == 0 or model.with_lags({}) != {}
    return said


def events_of(stream: Iterable[Happening]) -> list[Record]:
    out = []
    for offset, (what, number, target) in enumerate(stream):
        source = "labels" if what == "label" else "records"
        position, following = (Position(source, 0, place) for place in (offset, offset + 1))
        x = {} if what == "label" else x_of(number)
        record = Record({**x, "id": f"k{number}"}, target, position, following, b"raw")
        out.append(LabelRecord(*record) if what == "label" else record)
    return out


class Run:
    """A daemon's processor with late labels and, if wanted, challengers."""

    def __init__(self, model: Any, join: LabelJoin | None = None, others: dict[str, Any] | None = None) -> None:
        self.join = join or LabelJoin("id", "y", 3600.0, 1000, clock=lambda: 0.0)
        task = "regression" if isinstance(model, AdaptiveKernelRegressor) else "classification"
        metrics = ["mae"] if task == "regression" else ["accuracy"]
        learner = AdvancingLearner(model)
        challengers, scores = Challengers(), {}
        if others:
            learners = {name: AdvancingLearner(one) for name, one in others.items()}
            statuses = {name: ModelStatus() for name in ("own", *others)}
            challengers = Challengers("own", statuses, learners, 1.0, 100)
            scores = {name: Scores(Quality(task, metrics, 100), ProgressiveLoss(100)) for name in others}
        stage = JoinStage(self.join, learner, DeadLetterRate(1.0, 100), challengers)
        rates = DeadLetterRate(1.0, 100)
        quality, loss = Quality(task, metrics, 100), ProgressiveLoss(100)
        counts = RecordCounts()
        self.processor = Processor(learner, quality, loss, rates, counts, stage, challengers=challengers, others=scores)
        self.said: list[Any] = []

    def take(self, records: Sequence[Record], size: int) -> None:
        for start in range(0, len(records), size):
            chunk = [record._replace(x=dict(record.x)) for record in records[start : start + size]]
            for batch in self.processor.process(chunk):
                self.said += [line["prediction"] for line in self.processor.lines(batch)]


KINDS = [(AdaptiveKernelRegressor, 2), (AdaptiveKernelClassifier, 1), (AdaptiveKernelRegressor, 0)]


@pytest.mark.parametrize(("kind", "lags"), KINDS)
@pytest.mark.parametrize("size", [1, 10, 1000])
def test_a_record_is_learned_with_the_lags_of_its_prediction(kind: type, lags: int, size: int) -> None:
    model = model_of(kind, lags)
    daemon = Run(model)
    daemon.take(events_of(happenings(kind)), size)
    assert (daemon.said, model.state_digest()) == told(kind, lags)


@pytest.mark.parametrize(("kind", "lags"), KINDS[:2])
@pytest.mark.parametrize("at", [1, 3, 40, 101])
def test_the_lags_go_through_a_checkpoint(kind: type, lags: int, at: int) -> None:
    events = events_of(happenings(kind))
    model = model_of(kind, lags)
    first = Run(model)
    first.take(events[:at], 7)
    header, blob = snapshot.dump(first.join)
    again = LabelJoin("id", "y", 3600.0, 1000, clock=lambda: 0.0)
    snapshot.restore(again, json.loads(json.dumps(header)), blob)
    assert snapshot.dump(again) == (header, blob)
    assert [entry.lags for _, entry in again.pending] == [entry.lags for _, entry in first.join.pending]
    Run(model, again).take(events[at:], 13)
    assert model.state_digest() == told(kind, lags)[1]


@pytest.mark.parametrize("size", [1, 1000])
def test_a_label_that_is_refused_is_not_known(size: int) -> None:
    stream = happenings(AdaptiveKernelRegressor)
    # In the place of a label comes one that is none, and the right one a little later; one of them waited.
    spoilt: list[Happening] = []
    for what, number, target in stream:
        if what == "label" and number % 11 in (3, 7):
            spoilt.append((what, number, math.inf))
            continue
        spoilt.append((what, number, target))
    own, model = model_of(AdaptiveKernelRegressor, 2), model_of(AdaptiveKernelRegressor, 2)
    assert any(what == "label" and target == math.inf for what, _, target in spoilt)
    said = one_by_one(own, spoilt, 2, taken=[math.inf])
    late = [("label", number, 1.5) for number in range(110) if number % 11 in (3, 7)]
    kept = {number for what, number, _ in spoilt if what == "record"} & {number for _, number, _ in late}
    daemon = Run(model)
    daemon.take(events_of(spoilt), size)
    assert daemon.said == said
    assert model.state_digest() == own.state_digest()
    # The records of the refused labels wait on, with the lags they were predicted with.
    waiting = {int(key[1:]): entry.lags for key, entry in daemon.join.pending}
    assert kept <= waiting.keys()
    assert all(len(waiting[number]) == 2 for number in kept if number > 20)


def test_each_of_several_models_has_lags_of_its_own() -> None:
    stream = happenings(AdaptiveKernelRegressor)
    settings = {"own": 0, "one": 1, "three": 3}
    alone = {name: model_of(AdaptiveKernelRegressor, lags) for name, lags in settings.items()}
    for name, model in alone.items():
        one_by_one(model, stream, settings[name])
    models = {name: model_of(AdaptiveKernelRegressor, lags) for name, lags in settings.items()}
    daemon = Run(models["own"], others={name: models[name] for name in ("one", "three")})
    daemon.take(events_of(stream), 10)
    assert {name: model.state_digest() for name, model in models.items()} == {
        name: model.state_digest() for name, model in alone.items()
    }
    assert daemon.join.n_lags == 3


def test_a_model_that_has_learned_begins_with_what_it_knows() -> None:
    model, own = (model_of(AdaptiveKernelRegressor, 2) for _ in range(2))
    for one in (model, own):
        one.advance([x_of(number) for number in range(9)], [float(number) for number in range(9)])
    stream = happenings(AdaptiveKernelRegressor, 30)
    one_by_one(own, stream, 2)
    Run(model).take(events_of(stream), 10)
    assert model.state_digest() == own.state_digest()


def test_without_lags_nothing_is_kept() -> None:
    daemon = Run(model_of(AdaptiveKernelRegressor, 0))
    daemon.take(events_of(happenings(AdaptiveKernelRegressor)), 10)
    assert daemon.join.known is None
    assert all(entry.lags == () for _, entry in daemon.join.pending)


@pytest.mark.parametrize(("version", "way"), [(4, "start over with --fresh"), (6, "update streamkernel")])
def test_late_labels_of_another_version_are_refused(version: int, way: str) -> None:
    daemon = Run(model_of(AdaptiveKernelRegressor, 0))
    daemon.take(events_of(happenings(AdaptiveKernelRegressor)), 10)
    header, blob = snapshot.dump(daemon.join)
    line, _, rest = blob.partition(b"\n")
    head = json.loads(line)
    head["version"] = version
    again = LabelJoin("id", "y", 3600.0, 1000, clock=lambda: 0.0)
    with pytest.raises(OtherFormatError, match=f"version {version}, this streamkernel reads 5: {way}$"):
        snapshot.restore(again, header, json.dumps(head).encode() + b"\n" + rest)


class TestRuns:
    """The daemon as a whole: stopped now and then, as if never; several models, each with lags of its own."""

    MODELS: ClassVar[dict[str, Any]] = {
        "none": [{"streamkernel.AdaptiveKernelClassifier": SMALL}],
        "one": [{"streamkernel.AdaptiveKernelClassifier": {"lags": 1, **SMALL}}],
    }

    @pytest.mark.parametrize("several", [False, True])
    def test_a_run_that_was_stopped_is_as_one_that_was_not(
        self, homes: Callable[[str], Home], monkeypatch: pytest.MonkeyPatch, several: bool
    ) -> None:
        models = {"model": None, "models": self.MODELS, "publish": "one"} if several else {"model": self.MODELS["one"]}
        seen = []
        for name, stops in (("whole", ()), ("stopped", (1, 80, 149))):
            home = homes(name)
            write_pair(home.folder, "jsonl", 300)
            monkeypatch.chdir(home.folder)
            home.configure(**sections(), **models)
            for stop in stops:
                run(prepare(home.config), max_records=stop)
            run(prepare(home.config))
            seen.append(outcome(home))
        assert seen[0] == seen[1]

    def test_check_warns_of_lags_in_a_pipeline(self, home: Home) -> None:
        for name in ("records.jsonl", "labels.jsonl"):
            (home.folder / name).write_text('{"id": 1, "y": "a"}\n')
        told = []
        for before in ([], ["river.preprocessing.StandardScaler"]):
            home.configure(**sections(), model=[*before, *self.MODELS["one"]])
            told.append(
                any(
                    "learned with other lags than it was predicted with" in line
                    for line in caveats(prepare(home.config), {})
                )
            )
        assert told == [False, True]
