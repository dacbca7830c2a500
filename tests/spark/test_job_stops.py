"""Stops of a job: by signals, and by the end of the Java that Spark runs in."""

import os
import signal
from pathlib import Path

import pytest

from tests.processes import wait_until
from tests.spark.jobs import Job, write_lines
from tests.spark.streams import records

MODEL = [{"streamkernel.KernelRegressor": {"seed": 1, "dtype": "float64"}}]
N_FILES = 8


@pytest.fixture
def job(tmp_path):
    (tmp_path / "in").mkdir()
    for number in range(N_FILES):
        write_lines(tmp_path / "in" / f"{number:02}.jsonl", records(300, number))
    source = {"kind": "jsonl", "path": str(tmp_path / "in"), "watch": True, "target": "y", "target_type": "float"}
    return Job(tmp_path, source, MODEL)


def _learning(job):
    """A job that has learned its second micro-batch, and the process of its Java."""
    process = job.start("--max-per-batch", "1")
    wait_until(
        lambda: process.poll() is not None or (any(job.state.glob("*.skc")) and job.account["learned"] >= 600),
        "two micro-batches",
    )
    return process


def _java(process):
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
    (java,) = [int(one) for one in children if "java" in os.readlink(f"/proc/{one}/exe")]
    return java


def _goes_on(job, spark):
    """What was learned is whole micro-batches, and the rest of them comes once."""
    before = job.account["learned"]
    assert before % 300 == 0
    job.learn(spark)
    assert job.account["learned"] == job.account["consumed"] == 300 * N_FILES


@pytest.mark.parametrize(
    ("number", "to_all"),
    [(signal.SIGINT, False), (signal.SIGTERM, True)],
    ids=["SIGINT", "SIGTERM to all its processes"],
)
def test_a_signal_stops_quietly_between_micro_batches(job, spark, number, to_all):
    process = _learning(job)
    os.killpg(process.pid, number) if to_all else process.send_signal(number)
    printed, _ = process.communicate(timeout=60)
    assert process.returncode == 0, printed
    assert "Traceback" not in printed
    assert to_all or "\tat " not in printed  # Java that is stopped, too, tells of it in its own way
    assert f"{signal.Signals(number).name} came" in printed
    _goes_on(job, spark)


def test_java_that_is_killed_is_one_sentence(job, spark):
    process = _learning(job)
    os.kill(_java(process), signal.SIGKILL)
    printed, _ = process.communicate(timeout=60)
    assert process.returncode == 1, printed
    assert "Traceback" not in printed
    assert "Spark's Java process has ended" in printed.splitlines()[-1]
    _goes_on(job, spark)


def test_a_master_that_is_none_is_one_sentence(job):
    status, printed = job.run(master="nonsense")
    assert status == 1
    assert "Spark cannot be started" in printed.splitlines()[-1]
    assert "Traceback" not in printed
