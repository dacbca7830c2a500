"""The command `streamkernel spark` on files: counts, dead letters, restarts, kills and refusals."""

import json
import signal

import pytest

from tests.spark.jobs import Job, write_lines
from tests.spark.streams import records

MODEL = [{"streamkernel.KernelRegressor": {"seed": 1, "dtype": "float64"}}]


def _job(folder):
    (folder / "in").mkdir()
    for number in range(2):
        write_lines(folder / "in" / f"{number}.jsonl", records(400, number))
    source = {"kind": "jsonl", "path": str(folder / "in"), "watch": True, "target": "y", "target_type": "float"}
    return Job(folder, source, MODEL, dead_letters={"kind": "jsonl", "path": str(folder / "dead.jsonl")})


@pytest.fixture
def job(tmp_path):
    return _job(tmp_path)


def test_files_are_learned_once_and_bad_lines_kept(job, tmp_path, spark):
    with (tmp_path / "in" / "0.jsonl").open("a") as file:
        file.write('not json\n\n{"a": 1e999, "y": 1.0}\n{"a": 1, "y": "high"}\n')
    job.learn(spark)
    account = {"consumed": 804, "predicted": 800, "learned": 800, "unlabeled": 0, "skipped": 1, "dead": 3}
    assert job.account == account
    letters = [json.loads(line) for line in (tmp_path / "dead.jsonl").read_text().splitlines()]
    assert sorted(letter["reason"] for letter in letters) == ["infinite", "not_json", "target"]
    assert {letter["raw"] for letter in letters} >= {"not json"}
    before = job.digest
    job.learn(spark)  # nothing new
    assert (job.account, job.digest) == (account, before)
    write_lines(tmp_path / "in" / "2.jsonl", records(300, 2))
    job.learn(spark)
    assert job.account["learned"] == 1100
    assert job.checkpoint().header["spark"]["batch"] == 1


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory, spark):
    """The digest of the model that learned the files of `job` one after the other, without a kill."""
    folder = tmp_path_factory.mktemp("undisturbed")
    made = _job(folder)
    made.learn(spark, most=1)
    return made.digest


@pytest.mark.parametrize("point", ["checkpoint-before-rename:3", "checkpoint-after-rename:3"])
def test_a_driver_that_is_killed_counts_each_micro_batch_once(job, spark, undisturbed, point):
    """Between step and commit, and between our commit and Spark's."""
    status, printed = job.run("--until-end", "--max-per-batch", "1", crash=point)
    assert status == -signal.SIGKILL, printed
    job.learn(spark, most=1)
    assert job.account["learned"] == 800
    assert job.digest == undisturbed


def test_another_checkpoint_location_would_learn_twice_and_is_refused(job, spark):
    job.learn(spark)
    status, printed = job.run("--until-end", "--checkpoint-location", f"file://{job.folder}/other")
    assert status == 1
    assert "would be learned twice. Restore its checkpoint location" in printed.splitlines()[-1]
    assert job.account["learned"] == 800


def test_the_daemon_does_not_go_on_with_files_that_spark_read_whole(job, spark):
    job.learn(spark)
    status, printed = job.run(command="run")
    assert status == 1
    assert "from a Spark job, which reads whole files" in printed


def test_settings_that_spark_has_not_are_refused_by_name(job, tmp_path):
    text = (
        job.config.read_text()
        .replace("KernelRegressor", "AdaptiveKernelRegressor")
        .replace("dtype: float64", "n_trees: 0")
    )
    job.config.write_text(f"{text}\npredictions: {{kind: jsonl, path: {tmp_path}/lines.jsonl}}\nserve: {{port: 0}}\n")
    status, printed = job.run()
    assert status == 2
    # The first process on a machine says that it compiles.
    refused = [line for line in printed.splitlines() if not line.startswith("compiling for this machine")]
    assert [line.split(":")[0] for line in refused] == ["model", "serve", "predictions.kind"]
    assert "trees and memories" in printed
