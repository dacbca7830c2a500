"""A label is found where it stands, is never an input, and where no record has one the run says so."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from streamkernel.connectors.files.source import JsonLinesSource
from streamkernel.daemon.assembly.plan import prepare
from streamkernel.daemon.base.counts import RecordCounts
from streamkernel.daemon.base.errors import DaemonError
from streamkernel.daemon.check import check
from streamkernel.daemon.evaluate import evaluate
from streamkernel.daemon.runtime import run
from streamkernel.daemon.stream.label_watch import LabelWatch
from streamkernel.daemon.stream.stop import StopSignals
from tests.daemon.conftest import Home

NESTED = {"nested": "flatten", "exclude": ["schema"]}


def source(target: str, **more: Any) -> dict[str, Any]:
    return {"kind": "jsonl", "path": "x.jsonl", "target": target, "target_type": "bool", "inputs": NESTED, **more}


@pytest.fixture
def nested(home: Home) -> Home:
    """A home with records as a change of a data base comes in Kafka Connect."""
    lines = [
        json.dumps({"schema": {"type": "struct"}, "payload": {"id": n, "a": n % 7 / 7, "y": n % 2 == 0}})
        for n in range(200)
    ]
    (home.folder / "x.jsonl").write_text("\n".join(lines) + "\n")
    return home


def test_a_nested_label_is_learned_and_no_input(nested: Home) -> None:
    plan = prepare(nested.configure(source=source("payload.y")))
    found = check(plan)
    assert [line.split() for line in found.columns[1:]] == [
        ["payload.y", "True", "true", "or", "false", "target", "True"],
        ["schema", "a", "dict", "nested", "excluded"],
        ["payload.id", "0", "number", "input"],
        ["payload.a", "0.0", "number", "input"],
    ]
    assert run(plan).account["learned"] == 200
    assert sorted(plan.model.input_names) == ["payload.a", "payload.id"]


class TestNoneHasIt:
    def test_check_says_so(self, nested: Home) -> None:
        plan = prepare(nested.configure(source=source("payload.z")))
        (said,) = check(plan).bad
        assert said.endswith(
            "x.jsonl; none of its first 200 records has the label 'payload.z' (did you mean 'payload.y'?)"
        )
        lines = (nested.folder / "x.jsonl").read_text()
        (nested.folder / "x.jsonl").write_text(6 * lines)  # those behind the first thousand may have it
        found = check(plan)
        assert found.bad == []
        assert "none of its first 1000 records has the label" in found.good[0]

    def test_a_source_that_ends_is_an_error(self, nested: Home) -> None:
        said = (
            r"none of the 200 records has the label 'payload\.z' \(did you mean 'payload\.y'\?\); they have 'schema', "
        )
        config = nested.configure(source=source("payload.z"))
        for _ in range(2):  # also of a run that goes on behind the last record
            with pytest.raises(DaemonError, match=r"none of the 200 records has the label 'payload\.z'"):
                run(prepare(config))
        with pytest.raises(DaemonError, match=said):
            evaluate(prepare(config), StopSignals())

    def test_a_live_source_warns_once(self, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
        path = tmp_path / "x.jsonl"
        path.write_text('{"a": 1}\n' * 2500)
        with JsonLinesSource(path, "y", follow=True) as followed:
            followed.open()
            watch = LabelWatch(followed, "y", followed.columns)
            while watch.poll(300, 0):
                pass
        assert caplog.messages == [
            "source.target: none of the 1,200 records has the label 'y'; they have 'a': nothing is learned"
        ]
        watch.verify(RecordCounts(unlabeled=5, learned=1))
