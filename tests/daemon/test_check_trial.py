"""`check` learns the first records that a run would take, from where the checkpoint stands, and keeps nothing of it."""

from __future__ import annotations

import os
import socket
from pathlib import Path
from typing import Any

import pytest

from streamkernel.connectors.memory import MemorySource
from streamkernel.connectors.ports import Record, SinkError
from streamkernel.daemon.assembly.plan import prepare
from streamkernel.daemon.base.errors import CheckpointError, DaemonError
from streamkernel.daemon.check import check
from streamkernel.daemon.checkpoints.store import CheckpointStore
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

    def test_columns_are_those_behind_it(self, resumed: Home) -> None:
        found = check(prepare(resumed.configure(source=jsonl(), limits={"min_known_inputs": None})))
        assert found.bad == []
        assert any(line.startswith("  betrag") for line in found.columns)
        said = "the model has not learned 'betrag', and its input 'amount' does not arrive"
        assert any(said in line for line in found.good)

    def test_no_label_behind_it_is_told_and_no_error(self, home: Home) -> None:
        (home.folder / "x.jsonl").write_text(lines("amount"))
        run(prepare(home.configure(source=jsonl())))
        with (home.folder / "x.jsonl").open("a") as file:
            file.write('{"amount": 1}\n' * 3)
        good, bad = told(home, source=jsonl())
        assert bad == []
        assert good[0].endswith("none of its first 3 records has the label 'y'")
        assert run(prepare(home.config)).account["unlabeled"] == 3

    def test_late_labels_are_read_on_there_too(self, home: Home) -> None:
        def both(of: str, n: int) -> tuple[str, str]:
            return (
                "".join(f'{{"id": "{of}{i}", "amount": {i % 7}}}\n' for i in range(n)),
                "".join(f'{{"id": "{of}{i}", "y": "{"km"[i % 2]}"}}\n' for i in range(n)),
            )

        late = {"key": "id", "source": jsonl("l.jsonl"), "timeout_seconds": 60}
        sections = {"source": jsonl(target=None), "labels": late, "model": BAYES}
        for name, text in zip(("x.jsonl", "l.jsonl"), both("a", 60), strict=True):
            (home.folder / name).write_text(text)
        run(prepare(home.configure(**sections)))
        for name, text in zip(("x.jsonl", "l.jsonl"), both("b", 60), strict=True):
            with (home.folder / name).open("a") as file:
                file.write(text.replace("amount", "betrag"))
        (said,) = told(home, **sections)[1]
        assert "the model has learned none of the inputs that arrive ('betrag')" in said

    def test_records_that_killed_a_process_are_not_tried(self, resumed: Home) -> None:
        assert told(resumed, source=jsonl())[1] != []
        marker = resumed.folder / "out/state/learning"
        marker.write_bytes(b"A" + marker.read_bytes()[1:])
        good, bad = told(resumed, source=jsonl())
        assert bad == []
        assert any("are not tried: a process learns them now, or was killed by them" in line for line in good)


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

    @pytest.mark.parametrize(
        ("model", "kind"),
        [
            ({"KernelClassifier": {}}, "str"),
            ({"AdaptiveKernelClassifier": {"lags": 1}}, "str"),
            ({"AdaptiveKernelRegressor": {}}, "float"),
            ({"KernelLeastSquaresRegressor": {}}, "float"),
            ({"KernelNoveltyDetector": {}}, "str"),
            ({"KernelDensityRatio": {"p": "1", "q": "2"}}, "str"),
            ({"WindowRefit": {"model": {"streamkernel.KernelRegressor": {}}}}, "float"),
        ],
        ids=lambda one: next(iter(one)) if isinstance(one, dict) else one,
    )
    def test_our_estimators_admit_them_without_computing_anything(
        self, home: Home, monkeypatch: pytest.MonkeyPatch, model: dict[str, Any], kind: str
    ) -> None:
        (home.folder / "x.jsonl").write_text(lines("a", labels="12").replace('"1"', "1").replace('"2"', "2"))
        ((name, arguments),) = model.items()
        plan = prepare(home.configure(source=jsonl(target_type=kind), model=[{f"streamkernel.{name}": arguments}]))
        monkeypatch.delattr("streamkernel.estimators.base.StreamEstimator.advance")
        found = check(plan)
        assert found.bad == []
        assert not any("cannot be used" in line for line in found.good)

    def test_so_do_the_late_labels(self, home: Home) -> None:
        (home.folder / "x.jsonl").write_text("".join(f'{{"id": {i}, "a": {i % 7}}}\n' for i in range(60)))
        (home.folder / "l.jsonl").write_text("".join(f'{{"id": {i}, "y": "k"}}\n' for i in range(60)))
        late = {"key": "id", "source": jsonl("l.jsonl"), "timeout_seconds": 60}
        (said,) = told(home, source=jsonl(target=None), labels=late, model=LOGISTIC)[1]
        assert said.startswith("the first 50 labels are all dead letters (the last one: refused, ValueError")

    def test_a_warm_start_is_learned_before(self, home: Home) -> None:
        (home.folder / "x.jsonl").write_text(lines("betrag"))
        (home.folder / "old.jsonl").write_text(lines("amount", n=40))
        warm = {"source": jsonl("old.jsonl")}
        (said,) = told(home, source=jsonl(), warm_start=warm, model=BAYES)[1]
        with pytest.raises(DaemonError, match="the model has learned none of the inputs that arrive"):
            run(prepare(home.config))
        assert "the model has learned none of the inputs that arrive ('betrag')" in said

    def test_so_does_whatever_a_model_raises(self, home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
        def learn_one(*_: Any) -> None:
            raise MemoryError("no room")

        (home.folder / "x.jsonl").write_text(lines("a"))
        plan = prepare(home.configure(source=jsonl(), model=BAYES))
        monkeypatch.setattr("river.naive_bayes.GaussianNB.learn_one", learn_one)
        assert check(plan).bad == ["unexpected MemoryError: no room"]

    def test_a_step_without_its_input_fails_where_a_trained_model_predicts(self, home: Home) -> None:
        select = [{"river.compose.Select": {"args": ["a", "b"]}}, *BAYES]
        (home.folder / "x.jsonl").write_text('{"a": 1, "b": 2, "y": "k"}\n' * 60)
        run(prepare(home.configure(source=jsonl(), model=select)))
        (home.folder / "x.jsonl").write_text('{"a": 1}\n' * 60)
        off = {"checkpoint": None, "predictions": None, "dead_letters": None}
        bad = told(home, source=jsonl(), model=select, mode="predict", serve_from="out/state", **off)[1]
        assert "a step of the model needs this input" in bad[0]


def test_a_header_in_another_order_among_the_first_records_fails(home: Home) -> None:
    row = "1,2,p\n"
    (home.folder / "x.csv").write_text("a,b,y\n" + 10 * row + "b,a,y\n" + row)
    (said,) = check(prepare(home.configure(source={"kind": "csv", "path": "x.csv", "target": "y"}))).bad
    assert "the header is repeated with its columns in another order, at line 12 (offset 66)" in said


def test_columns_and_places_are_those_of_the_file_that_a_record_stands_in(home: Home) -> None:
    (home.folder / "in").mkdir()
    (home.folder / "in/a.csv").write_text("a,empty,y\nx,,maybe\n1,,true\n")
    (home.folder / "in/b.csv").write_text("empty,a,y\n,2,true\n")
    source = {"kind": "csv", "path": "in/*.csv", "target": "y", "target_type": "bool"}
    found = check(prepare(home.configure(source=source)))
    assert [line.split()[0] for line in found.columns[1:]] == ["y", "a", "empty"], found
    assert any("the first, at line 2 (offset 10) of in/a.csv" in line for line in found.good), found


def test_advice_names_the_section_of_a_warm_start(home: Home) -> None:
    (home.folder / "old.csv").write_text("a,y\n1,maybe\n")
    (home.folder / "x.csv").write_text("a,y\n1,true\n")
    settings = {"kind": "csv", "target": "y", "target_type": "bool"}
    warm = {"source": {**settings, "path": "old.csv"}}
    (said,) = check(prepare(home.configure(source={**settings, "path": "x.csv"}, warm_start=warm))).bad
    assert "set warm_start.source.target_type to the type of warm_start.source.target" in said


@pytest.mark.parametrize(("lags", "n_polls", "is_empty"), [([{}, {("t", 0): 9}], 3, False), ([{("t", 0): 0}], 1, True)])
def test_a_topic_is_empty_once_its_end_is_known(
    home: Home, monkeypatch: pytest.MonkeyPatch, lags: list[Any], n_polls: int, *, is_empty: bool
) -> None:
    """A slow broker's first records come after the first polls."""

    class Topic(MemorySource):
        polls = 0
        lag = property(lambda self: lags[min(self.polls, len(lags)) - 1])

        def poll(self, max_records: int, timeout: float) -> list[Record]:
            self.polls += 1
            return [] if is_empty or self.polls < n_polls else super().poll(max_records, timeout)

    topic = Topic([({"a": i}, "km"[i % 2]) for i in range(60)])
    monkeypatch.setattr("streamkernel.daemon.check.make_source", lambda *_, **__: topic)
    source = {"kind": "kafka", "bootstrap_servers": "b:9092", "topic": "t", "target": "y"}
    assert any("no record yet" in line for line in check(prepare(home.configure(source=source))).good) == is_empty
    assert topic.polls == n_polls or not is_empty


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
