"""Group mode in a configuration, and the daemon of one partition: it waits, reports and dies with its member."""

from __future__ import annotations

import json
import logging
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from streamkernel.daemon import cli
from streamkernel.daemon.base.errors import CheckpointError, DirectoryInUseError
from streamkernel.daemon.checkpoints.store import CheckpointStore
from streamkernel.daemon.config.document import parse
from streamkernel.daemon.config.grouped import partition_document
from streamkernel.daemon.config.problems import ConfigError
from streamkernel.daemon.config.schema import LogConfig
from streamkernel.daemon.config.secrets import Redactor
from streamkernel.daemon.group.first_partitions import is_added, note_first_partitions
from streamkernel.daemon.group.reports import Report, Reporter, ReportReader
from streamkernel.daemon.monitoring.log import start_logging
from streamkernel.daemon.partition import PartitionListener, PartitionSignals
from streamkernel.daemon.runtime import run
from streamkernel.daemon.stream.stop import Stopped
from streamkernel.daemon.wiring.plan import plan_of, prepare
from tests.daemon.conftest import Home
from tests.processes import alive, wait_until

SOURCE: dict[str, Any] = {
    "kind": "kafka",
    "topic": "t",
    "bootstrap_servers": "localhost:9092",
    "target": "y",
    "group": "g",
}
FINE: dict[str, Any] = {
    "source": SOURCE,
    "model": [{"streamkernel.KernelClassifier": {"seed": 1}}],
    "predictions": {"kind": "jsonl", "path": "out/{partition}/predictions.jsonl"},
    "dead_letters": {"kind": "kafka", "topic": "d", "bootstrap_servers": "localhost:9092"},
    "checkpoint": {"directory": "out/state"},
}


def lines(**changes: Any) -> list[str]:
    """What is wrong with a configuration in group mode that has these changes."""
    settings = {key: value for key, value in {**FINE, **changes}.items() if value is not None}
    try:
        plan_of(Path("a.yaml"), parse(yaml.safe_dump(settings)))
    except ConfigError as error:
        return error.lines
    return []


def test_a_group_is_fine() -> None:
    assert lines() == []
    assert lines(mode="predict", serve_from="out/learnt/partition-{partition}") == []
    assert lines(source={**SOURCE, "options": {"session_timeout_ms": 6000, "heartbeat_interval_ms": 1000}}) == []


@pytest.mark.parametrize(
    ("changes", "line"),
    [
        ({"checkpoint": None}, "checkpoint: required with source.group, a partition's model changes hands through it"),
        (
            {"mode": "predict"},
            "checkpoint: source.group needs a checkpoint.directory of its own, the model being in serve_from",
        ),
        ({"source": {**SOURCE, "partitions": [0, 1]}}, "source.partitions: must be all with source.group"),
        ({"source": {**SOURCE, "order": "logged"}}, "source.order: not with source.group"),
        ({"source": {**SOURCE, "group": ""}}, "source.group: must not be empty"),
        ({"source": {**SOURCE, "options": {"group_id": "h"}}}, "source.options.group_id: not with source.group"),
        (
            {"source": {**SOURCE, "group": None, "options": {"session_timeout_ms": 6000}}},
            "source.options.session_timeout_ms: has a meaning only with source.group",
        ),
        (
            {"predictions": {"kind": "csv", "path": "out/predictions.csv"}},
            "predictions.path: must contain {partition} with source.group",
        ),
        ({"predictions": {"kind": "jsonl", "path": "-"}}, "predictions.path: must contain {partition}"),
        (
            {"dead_letters": {"kind": "jsonl", "path": "out/dead-partition.jsonl"}},
            "dead_letters.path: must contain {partition} with source.group",
        ),
        (
            {"predictions": {**FINE["dead_letters"], "topic": "p", "transactional_id": "daemon"}},
            "predictions.transactional_id: must contain {partition} with source.group",
        ),
        (
            {"labels": {"key": "id", "source": {"kind": "jsonl", "path": "a.jsonl", "target": "y"}}},
            "labels: not with source.group",
        ),
        (
            {"source": {**SOURCE, "group": None}, "labels": {"key": "id", "source": {**SOURCE, "topic": "l"}}},
            "labels.source.group: not for labels",
        ),
    ],
)
def test_what_cannot_go_with_a_group(changes: dict[str, Any], line: str) -> None:
    (found,) = lines(**changes)
    assert found.startswith(line)


def test_the_share_of_one_partition() -> None:
    settings = {
        **FINE,
        "source": {**SOURCE, "topic": "${TOPIC}", "options": {"client_id": "c", "session_timeout_ms": 6000}},
        "predictions": {**FINE["dead_letters"], "topic": "p", "transactional_id": "daemon-{partition}"},
        "dead_letters": {"kind": "csv", "path": "${OUT}/dead-{partition}.csv"},
        "checkpoint": {"directory": "${OUT}/state", "keep": 5},
        "metrics": {"host": "0.0.0.0", "port": 9108, "window": 77, "tls": {"certificate": "c.pem", "key": "k.pem"}},
    }
    whole = parse(yaml.safe_dump(settings), environment={"TOPIC": "clicks", "OUT": "/mnt/out"})
    document = partition_document(whole, 12)
    plan = plan_of(Path("a.yaml"), document)
    config = plan.config.model_dump()
    assert (config["source"]["group"], config["source"]["partitions"], config["source"]["topic"]) == (
        None,
        [12],
        "clicks",
    )
    assert plan.config.source.options.given() == {"client_id": "c"}  # type: ignore[union-attr]
    assert config["predictions"]["transactional_id"] == "daemon-12"
    assert config["dead_letters"]["path"] == "/mnt/out/dead-12.csv"
    assert (config["checkpoint"]["directory"], config["checkpoint"]["keep"]) == ("/mnt/out/state/partition-12", 5)
    metrics = config["metrics"]
    assert (metrics["host"], metrics["port"], metrics["window"], metrics["tls"]) == ("127.0.0.1", 0, 77, None)
    # What is stored and shown keeps its variables.
    assert plan.raw["dead_letters"]["path"] == "${OUT}/dead-12.csv"
    assert plan.raw["checkpoint"]["directory"] == "${OUT}/state/partition-12"
    assert plan.redact("in /mnt/out") == "in /mnt/out"
    # The whole stays what it was.
    assert whole.values["source"]["group"] == "g"
    assert partition_document(parse(yaml.safe_dump({**settings, "metrics": None})), 0).values["metrics"] is None

    served = {**settings, "mode": "predict", "serve_from": "/mnt/learnt/partition-{partition}"}
    served["initial_model"] = {"checkpoint": "/mnt/{partition}.skc"}
    values = partition_document(parse(yaml.safe_dump(served)), 7).values
    assert values["serve_from"] == "/mnt/learnt/partition-7"
    assert values["initial_model"] == {"checkpoint": "/mnt/7.skc"}

    del settings["source"]["group"]  # type: ignore[attr-defined]
    with pytest.raises(ConfigError, match=r"source\.group: required"):
        partition_document(parse(yaml.safe_dump(settings)), 0)


@pytest.mark.parametrize("option", ["--fresh", "--max-records=5"])
def test_options_of_the_command_line_that_a_group_rules_out(
    option: str, home: Home, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["run", str(home.configure(**FINE)), option]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(f"{option.partition('=')[0]}: not with source.group: ")


def test_a_group_cannot_be_evaluated(home: Home, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["evaluate", str(home.configure(**FINE))]) == 1
    assert "evaluate needs a source that ends" in capsys.readouterr().err


def test_the_options_of_children_are_not_shown(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["run", "--help"]) == 0
    said = capsys.readouterr().out
    assert "--fresh" in said
    assert "--partition" not in said
    assert "--member" not in said


def test_inspect_lists_the_partitions(here: Home, capsys: pytest.CaptureFixture[str]) -> None:
    for partition, count in ((0, 120), (10, 200), (2, 160)):
        state = f"group/partition-{partition}"
        settings = {"checkpoint": {"directory": state}, "predictions": None, "dead_letters": None}
        run(prepare(here.configure(**settings)), max_records=count)
    # One that was given to a member a moment ago, and something that is no partition.
    begun = CheckpointStore(here.folder / "group/partition-3")
    begun.lock()
    begun.close()
    (here.folder / "group/partition-old").mkdir()
    assert cli.main(["inspect", "group", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)["partitions"]
    assert {partition: about["account"]["consumed"] for partition, about in found.items()} == {
        "0": 120,
        "2": 160,
        "10": 200,
    }
    assert cli.main(["inspect", "group"]) == 0
    rows = [line.split() for line in capsys.readouterr().out.splitlines() if line[1:3].strip().isdigit()]
    assert [(row[0], row[2]) for row in rows] == [("0", "120"), ("2", "160"), ("10", "200")]
    assert found["2"]["model"]["state_digest"].startswith(rows[1][-1])


def test_a_partition_that_came_later_is_known_to_all_members(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    directory = tmp_path / "out/state"
    assert not is_added(directory, 3)  # nobody was at work yet
    exists: Callable[[Path], bool] = Path.exists
    # Two members begin at the same moment: neither sees that the other has.
    monkeypatch.setattr(Path, "exists", lambda _: False)
    note_first_partitions(directory, [0, 1])
    note_first_partitions(directory, [0, 1, 2])
    monkeypatch.setattr(Path, "exists", exists)
    assert [is_added(directory, one) for one in range(4)] == [False, False, True, True]
    assert [path.name for path in directory.iterdir()] == ["first-partitions.json"]


# A member that starts a child which would live for ever, and tells both numbers.
MEMBER = """
import os, subprocess, sys, time
child = subprocess.Popen([sys.executable, "-c", sys.argv[1], str(os.getpid())], stdout=subprocess.PIPE, text=True)
child.stdout.readline()
print(child.pid, flush=True)
time.sleep(600)
"""
CHILD = """
import sys, time
from streamkernel.daemon.base.parent_death import die_with
die_with(int(sys.argv[1]))
print("ready", flush=True)
time.sleep(600)
"""


@pytest.mark.usefixtures("processes")
@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere a child looks round between two records")
def test_a_child_dies_with_its_member() -> None:
    member = subprocess.Popen([sys.executable, "-c", MEMBER, CHILD], stdout=subprocess.PIPE, text=True)
    assert member.stdout is not None
    child = int(member.stdout.readline())
    assert alive(child)
    member.kill()
    member.wait()
    member.stdout.close()
    wait_until(lambda: not alive(child))


@pytest.mark.usefixtures("processes")
def test_a_child_whose_member_died_before_it_could_say_so_ends() -> None:
    ended = subprocess.run([sys.executable, "-c", CHILD, "1"], capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stdout) == (1, "")


def test_where_the_kernel_does_not_see_to_it_the_child_does() -> None:
    stopped = PartitionSignals(os.getppid())
    assert not stopped()
    stopped = PartitionSignals(os.getpid())  # which is not our parent: as if that had died
    assert stopped()
    assert stopped.name == "the end of its member"


def test_being_told_twice_to_stop_does_not_kill() -> None:
    with PartitionSignals(os.getppid()) as stopped:
        for number in (signal.SIGTERM, signal.SIGTERM, signal.SIGINT):
            os.kill(os.getpid(), number)
        wait_until(stopped)
        assert stopped.name in ("SIGTERM", "SIGINT")


def pipe() -> tuple[ReportReader, Reporter, Callable[[], None]]:
    ours, theirs = os.pipe()
    return ReportReader(ours), Reporter(theirs), lambda: (os.close(ours), os.close(theirs))[0]


def test_the_directory_is_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    monkeypatch.setattr("streamkernel.daemon.partition.LOCK_SECONDS", 0.01)
    reader, reporter, close = pipe()
    before, after = CheckpointStore(tmp_path / "a"), CheckpointStore(tmp_path / "a")
    before.lock()
    asked = 0

    def stopped() -> bool:
        nonlocal asked
        asked += 1
        if asked == 5:
            before.close()
        return False

    PartitionListener(reporter, os.getppid()).take(after, stopped)
    assert asked >= 5
    assert reader.read() == [Report("waiting", f"process {os.getpid()}")]
    assert caplog.messages == [f"waiting for {tmp_path / 'a'}, held by process {os.getpid()}"]

    with pytest.raises(Stopped):
        PartitionListener(reporter, os.getppid()).take(before, lambda: True)
    after.close()
    close()


def test_the_holder_is_named_with_its_host_where_that_is_another_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = CheckpointStore(tmp_path), CheckpointStore(tmp_path)
    first.lock()
    monkeypatch.setattr("socket.gethostname", lambda: "elsewhere")
    here = (tmp_path / "lock").read_text().split()[1]
    with pytest.raises(DirectoryInUseError, match=rf"\(process {os.getpid()} on {here}\): stop it") as error:
        second.lock()
    assert error.value.holder == f"process {os.getpid()} on {here}"
    first.close()
    second.lock()
    assert (tmp_path / "lock").read_text() == f"{os.getpid()} elsewhere"
    second.close()


def test_who_lost_its_lock_writes_nothing_more(tmp_path: Path) -> None:
    store = CheckpointStore(tmp_path)
    store.lock()
    store.write({}, b"mine")
    # As where a file server has given the lock of a machine it did not hear to another one.
    (tmp_path / "lock").write_text("7 elsewhere")
    with pytest.raises(CheckpointError, match=r"was taken over by another daemon \(process 7 on elsewhere\)"):
        store.write({}, b"mine")
    (tmp_path / "lock").unlink()
    with pytest.raises(CheckpointError, match="its lock was removed"):
        store.write({}, b"mine")
    store.close()
    assert [path.name for path in tmp_path.iterdir()] == ["checkpoint-000000000000.skc"]


def test_reports_never_wait_and_arrive_in_order() -> None:
    reader, reporter, close = pipe()
    # A member that is stopped does not read: what a pipe and as much again cannot hold is dropped.
    for number in range(50_000):
        reporter.send("saved", number)
    found: list[Report] = []

    def read_all() -> None:
        while not (found and not reporter._waiting):
            reporter.flush(0.0)
            found.extend(reader.read())
        found.extend(reader.read())

    read_all()
    values = [report.value for report in found]
    assert values == list(range(len(values)))
    assert 5_000 < len(values) < 50_000
    # What a daemon dies of is told in full.
    reporter.send("failed", "a long story " * 10_000)
    read_all()
    assert found[-1].value == "a long story " * 10_000
    close()


def test_a_member_that_is_gone_is_no_trouble_for_who_tells() -> None:
    ours, theirs = os.pipe()
    os.close(ours)
    Reporter(theirs).send("saved", 1)
    os.close(theirs)


@pytest.mark.parametrize("style", ["text", "json"])
def test_log_lines_say_which_partition(style: str, capsys: pytest.CaptureFixture[str]) -> None:
    start_logging(LogConfig(format=style), Redactor({}), 3)
    logging.getLogger("a").warning("bad\nnews")
    line = capsys.readouterr().err
    if style == "text":
        assert line.endswith(" warning partition 3: bad news\n")
    else:
        assert json.loads(line)["partition"] == 3
