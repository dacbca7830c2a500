"""The golden checkpoints are read, and learning goes on from them."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from streamkernel.connectors.kafka.writing.mark import OutputMark
from streamkernel.daemon.assembly.plan import prepare
from streamkernel.daemon.checkpoints.store import CheckpointStore
from streamkernel.daemon.monitoring.inspection import describe
from streamkernel.daemon.run_state import resume
from streamkernel.daemon.run_state.models import published_entry
from streamkernel.daemon.runtime import run
from tests.daemon.labels_stream import adds_up
from tests.golden.make import CASES, HALF, PLACE, PROMOTED, WHOLE, make

# With a test of their own below.
APART = ("kafka", "several-models")


@pytest.fixture
def enter(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Go into a copy of a case."""
    return lambda case: monkeypatch.chdir(shutil.copytree(PLACE / case, tmp_path / case))


def lines(path: Path) -> int:
    return len(path.read_text().splitlines())


def test_only_the_current_format_has_golden_checkpoints() -> None:
    assert sorted(PLACE.parent.glob("checkpoints-v*")) == [PLACE]
    assert {path.name for path in PLACE.iterdir()} == CASES.keys()


@pytest.mark.parametrize("case", [case for case in CASES if case not in APART])
def test_learning_goes_on_from_a_golden_checkpoint(enter: Callable[[str], None], case: str) -> None:
    enter(case)
    before = describe(Path("state"))["source"]["account"]
    assert before["consumed"] == HALF
    run(prepare(Path("config.yaml")))
    header = describe(Path("state"))
    after = header["source"]["account"]
    assert after["consumed"] >= WHOLE
    assert after["learned"] > before["learned"]
    assert after["learned"] == published_entry(header).get("n_records", after["learned"])
    if case == "late-labels":
        adds_up(header)
    (predictions,) = Path().glob("predictions.*")
    assert lines(predictions) - (predictions.suffix == ".csv") == after["predicted"]


def test_the_case_without_a_broker_is_still_made_as_a_daemon_writes_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    make("kafka")
    made, kept = describe(Path("state")), describe(PLACE / "kafka" / "state")
    changing = ("file", "run", "models", "payload_bytes", "payload_sha256")
    assert [(key, made[key]) for key in made if key not in changing] == [
        (key, kept[key]) for key in kept if key not in changing
    ]


def test_several_models_go_on_from_a_golden_checkpoint(enter: Callable[[str], None]) -> None:
    enter("several-models")
    before = describe(Path("state"))
    promotions = [[PROMOTED, "champion", "challenger"]]
    assert (before["source"]["account"]["consumed"], before["models"]["published"], before["models"]["promotions"]) == (
        HALF,
        "challenger",
        promotions,
    )
    assert before["labels"]["pending"] > 0
    run(prepare(Path("config.yaml")))
    header = describe(Path("state"))
    assert (header["models"]["published"], header["models"]["promotions"]) == ("challenger", promotions)
    assert header["source"]["account"]["learned"] > before["source"]["account"]["learned"]
    adds_up(header)
    for name in ("champion", "challenger"):
        assert header["models"]["learners"][name]["model"]["n_records"] == header["source"]["account"]["learned"]
        assert header["models"]["learners"][name]["shown"] > before["models"]["learners"][name]["shown"]
    assert header["models"]["learners"]["river"]["shown"] == header["models"]["learners"]["champion"]["shown"]
    said = [json.loads(line) for line in Path("predictions.jsonl").read_text().splitlines()]
    assert len(said) == header["source"]["account"]["predicted"]
    assert {(line["model"], *line["models"]) for line in said} == {
        ("champion", "challenger", "river"),
        ("challenger", "champion", "river"),
    }


def test_what_topics_are_known_by_is_read(enter: Callable[[str], None]) -> None:
    enter("kafka")
    plan = prepare(Path("config.yaml"))
    start = resume.restore(plan, CheckpointStore(Path("state")).newest())
    assert [start.positions[partition][:3] for partition in (0, 1, 2)] == [
        ("cluster/in/n1", partition, 100 + partition) for partition in (0, 1, 2)
    ]
    marks = {key: OutputMark.from_json(start.mark_of(key, plan.raw[key])) for key in ("predictions", "dead_letters")}
    assert [line.position.offset for line in marks["predictions"].lines] == [99, 100]
    assert [(mark.committed, mark.number) for mark in marks.values()] == [(6, 7), (0, 0)]
    assert (start.counts.consumed, start.recent_dead) == (HALF + 43, [7, 90, 301])
    start.models.main.model.learn_one({"a": 1, "b": 2}, "p")
    assert start.models.main.model.n_records == HALF + 1
