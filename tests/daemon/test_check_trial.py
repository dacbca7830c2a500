"""`check` learns the first records that a run would take, from where the checkpoint stands, and keeps nothing of it."""

from __future__ import annotations

import os
import socket
from pathlib import Path
from typing import Any

import pytest

from streamkernel.connectors.ports import SinkError
from streamkernel.daemon.assembly.plan import prepare
from streamkernel.daemon.base.errors import CheckpointError, DaemonError
from streamkernel.daemon.check import check
from streamkernel.daemon.checkpoints.store import CheckpointStore
from streamkernel.daemon.run_state.models import published_entry
from streamkernel.daemon.runtime import run
from tests.daemon.conftest import Home

LOGISTIC = ["river.linear_model.LogisticRegression"]
BAYES = ["river.naive_bayes.GaussianNB"]


def lines(*names: str, n: int = 60, labels: str = "km") -> str:
    """Records without a header, or JSON objects where there are names."""
    given = [(i % 7 / 7, labels[i % len(labels)]) for i in range(n)]
    return "".join(f'{{"{names[0]}": {x}, "y": "{y}"}}\n' if names else f"{x},{y}\n" for x, y in given)


def jsonl(path: str = "x.jsonl", **more: Any) -> dict[str, Any]:
    return {"kind": "jsonl", "path": path, "target": "y", **more}


@pytest.fixture
def resumed(home: Home) -> Home:
    """A home in which a run has learned 60 records of `amount`, behind which as many of `betrag` stand."""
    (home.folder / "x.jsonl").write_text(lines("amount"))
    run(prepare(home.configure(source=jsonl())))
    with (home.folder / "x.jsonl").open("a") as file:
        file.write(lines("betrag"))
    return home


def told(home: Home, **sections: Any) -> tuple[list[str], list[str]]:
    found = check(prepare(home.configure(**sections)))
    return found.good, found.bad


class TestAtTheCheckpoint:
    def test_renamed_columns_behind_it_fail(self, resumed: Home) -> None:
        why = r"source: the model has learned none of the inputs that arrive \('betrag'\); it knows 'amount'"
        (said,) = told(resumed, source=jsonl())[1]
        with pytest.raises(DaemonError, match=why) as failed:
            run(prepare(resumed.config))
        assert said == str(failed.value)

    def test_a_daemon_at_work_there_is_told_and_left_alone(self, resumed: Home) -> None:
        state = CheckpointStore(resumed.folder / "out/state")
        words = f"; a daemon is at work there (process {os.getpid()})"
        with socket.create_server(("127.0.0.1", 0)) as taken:
            port = taken.getsockname()[1]
            for act, is_at_work in ((state.lock, True), (state.close, False)):
                act()
                good, bad = told(resumed, source=jsonl(), metrics={"port": port})
                assert [line.endswith(words) for line in good if line.startswith("checkpoint: ")] == [is_at_work]
                assert (f"metrics: 127.0.0.1:{port}, not tried while a daemon is at work" in good) == is_at_work
                assert any(str(port) in line for line in bad) != is_at_work


class TestTheFirstRecords:
    def test_labels_that_the_model_refuses_fail_as_in_a_run(self, home: Home) -> None:
        (home.folder / "x.jsonl").write_text(lines("a", n=50))
        (said,) = told(home, source=jsonl(), model=LOGISTIC)[1]
        with pytest.raises(DaemonError) as failed:
            run(prepare(home.config))
        assert said == str(failed.value)
        assert "the first 50 records are all dead letters (the last one: refused, ValueError" in said

    @pytest.mark.parametrize("n", [60, 5])
    def test_a_text_that_a_scaler_refuses_has_the_advice_of_a_run(self, home: Home, n: int) -> None:
        (home.folder / "x.jsonl").write_text('{"a": "b", "y": "yes"}\n' * n)
        (said,) = told(home, source=jsonl(), model=["river.preprocessing.StandardScaler", *BAYES])[1]
        assert said.count("TypeError: ") == 1
        assert said.endswith(": source.inputs.exclude leaves out columns that a step cannot use")

    def test_a_warm_start_is_learned_before(self, home: Home) -> None:
        (home.folder / "x.jsonl").write_text(lines("betrag"))
        (home.folder / "old.jsonl").write_text(lines("amount", n=40))
        warm = {"source": jsonl("old.jsonl")}
        (said,) = told(home, source=jsonl(), warm_start=warm, model=BAYES)[1]
        with pytest.raises(DaemonError, match="the model has learned none of the inputs that arrive"):
            run(prepare(home.config))
        assert "the model has learned none of the inputs that arrive ('betrag')" in said

    def test_nothing_is_kept(self, home: Home) -> None:
        (home.folder / "x.jsonl").write_text(lines("a"))
        plan = prepare(home.configure(source=jsonl()))
        check(plan)
        assert sorted(path.name for path in Path(home.folder).iterdir()) == ["config.yaml", "x.jsonl"]
        assert run(plan).account["learned"] == 60
        before = published_entry(home.header())
        run(prepare(home.config), fresh=True)
        assert published_entry(home.header()) == before


def test_a_header_in_another_order_among_the_first_records_fails(home: Home) -> None:
    row = "1,2,p\n"
    (home.folder / "x.csv").write_text("a,b,y\n" + 10 * row + "b,a,y\n" + row)
    (said,) = check(prepare(home.configure(source={"kind": "csv", "path": "x.csv", "target": "y"}))).bad
    assert "the header is repeated with its columns in another order, at line 12 (offset 66)" in said


@pytest.mark.parametrize(
    ("section", "path", "file"),
    [
        ("checkpoint", "afile/state", "afile/state/lock"),
        ("checkpoint", "/proc/foo/state", "/proc/foo/state/lock"),
        ("checkpoint", "closed/state", "closed/state/lock"),
        ("jsonl", "afile/out.jsonl", "afile/out.jsonl"),
        ("jsonl", "/proc/foo/out.jsonl", "/proc/foo/out.jsonl"),
        ("csv", "closed", "closed"),
        ("csv", "closed/out.csv", "closed/out.csv"),
        ("parquet", "closed/out", "closed/out/part"),
    ],
)
def test_check_and_run_say_the_same_of_a_place_that_cannot_be_written(
    home: Home, monkeypatch: pytest.MonkeyPatch, section: str, path: str, file: str
) -> None:
    (home.folder / "stream.csv").write_text("a,y\n1,2\n")
    (home.folder / "afile").touch()
    (home.folder / "closed").mkdir()
    access = os.access
    monkeypatch.setattr(os, "access", lambda one, mode: Path(one).name != "closed" and access(one, mode))
    state = section == "checkpoint"
    output = {"directory": path} if state else {"kind": section, "path": path}
    plan = prepare(home.configure(**{"checkpoint" if state else "predictions": output}))
    (said,) = check(plan).bad
    with pytest.raises((CheckpointError, SinkError)) as failed:
        run(prepare(home.config))
    assert said == str(failed.value)
    assert said.removeprefix(f"{home.folder}/").startswith(f"{file}: cannot be written: ")
