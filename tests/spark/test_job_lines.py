"""What a job makes of odd lines and odd files: what the daemon makes of them, or one sentence."""

import json
import os
from unittest.mock import Mock

import pytest

from streamkernel.connectors import ConnectorError
from streamkernel.daemon.base.errors import CheckpointError, DaemonError
from streamkernel.daemon.failure import sentence
from streamkernel.spark.job_progress import JobProgress
from tests.spark.jobs import Job

MODEL = [{"streamkernel.KernelRegressor": {"kernel": {"streamkernel.kernels.Gaussian": {"bandwidth": 1.0}}, "seed": 1}}]
GOOD = b"".join(json.dumps({"a": i / 7, "b": i % 3, "y": i * 0.1}).encode() + b"\n" for i in range(100))


class Lines:
    """A job of files in a folder, run in the session of the test."""

    def __init__(self, folder, spark, kind, max_rate=1.0):
        self.folder = folder
        self.input = folder / "in"
        self.input.mkdir(parents=True)
        self._spark = spark
        self.source = {"kind": kind, "path": str(self.input), "watch": True, "target": "y", "target_type": "float"}
        letters = {"kind": "jsonl", "path": str(folder / "dead.jsonl"), "max_rate": max_rate}
        self.job = Job(folder, self.source, MODEL, dead_letters=letters)

    def write(self, name, data):
        (self.input / name).write_bytes(data)

    def learn(self, **options):
        return self.job.learn(self._spark, **options)

    def refused(self, **options):
        with pytest.raises((DaemonError, CheckpointError, ConnectorError)) as caught:
            self.learn(**options)
        said = sentence(caught.value)
        assert "\n" not in said
        assert len(said) < 600
        assert not said.startswith("unexpected")
        return said

    @property
    def letters(self):
        return [json.loads(line) for line in (self.folder / "dead.jsonl").read_text().splitlines()]


@pytest.fixture
def jsonl(tmp_path, spark):
    return Lines(tmp_path, spark, "jsonl")


@pytest.fixture
def csv(tmp_path, spark):
    return Lines(tmp_path, spark, "csv")


def test_bytes_that_are_no_text_are_a_dead_letter_with_its_file(jsonl):
    jsonl.write("good.jsonl", GOOD)
    jsonl.write("odd.jsonl", b'{"a": 1, "b": "\xff\xfe", "y": 1}\n{"a": 2, "y": 3}\n')
    account = jsonl.learn()
    assert (account["consumed"], account["learned"], account["dead"]) == (102, 101, 1)
    (letter,) = jsonl.letters
    assert letter["reason"] == "encoding"
    assert letter["detail"].startswith("byte 0xff at 15 is not UTF-8, in file:")
    assert letter["detail"].endswith("/in/odd.jsonl")


def test_a_line_ends_where_the_daemons_does(jsonl):
    """Not at a carriage return, which is white space in an object, and stands for itself in a field."""
    jsonl.write("crlf.jsonl", GOOD.replace(b"\n", b"\r\n") + b'{"a": 1,\r "b": 2, "y": 3}\r\n\r\n')
    account = jsonl.learn()
    assert (account["consumed"], account["learned"], account["skipped"], account["dead"]) == (102, 101, 1, 0)


def test_a_csv_file_with_carriage_returns_and_a_byte_order_mark(csv):
    csv.write("0.csv", b"\xef\xbb\xbfa,b,y\r\n" + b"1,2,3\r\n" * 50)
    csv.write("1.csv", b"a,b,y\n" + b"1,x\xe9,3\n" + b"1,2,3\n" * 49)
    account = csv.learn()
    assert (account["consumed"], account["learned"], account["dead"]) == (100, 99, 1)
    assert csv.letters[0]["reason"] == "encoding"


@pytest.mark.parametrize(
    ("header", "said"),
    [
        (b"a,a,y", "column names must differ, the header repeats 'a'"),
        (b'a,"b', "the header cannot be read"),
        (b"\xff\xfea,y", "the header is not utf-8"),
        (b"", "the first line is empty"),
        (b"a,b", "there is no column 'y' for the target"),
    ],
)
def test_a_header_that_cannot_be_used(csv, header, said):
    csv.write("0.csv", header + b"\n1,2,3\n")
    refusal = csv.refused()
    assert said in refusal
    assert str(csv.input) in refusal


def test_the_first_header_is_that_of_all_files(csv):
    """Whichever file Spark lists first."""
    csv.write("1.csv", b"a,b,y\n" + b"1,2,3\n" * 50)
    csv.learn()
    csv.write("2.csv", b"b,a,y\n" + b"1,2,3\n" * 90)
    csv.write("3.csv", b"a,b,y\n" + b"1,2,3\n" * 50)
    refusal = csv.refused()
    assert "/in/2.csv: its first line is b,a,y, and the first file has a,b,y" in refusal
    (csv.input / "2.csv").unlink()
    assert csv.learn()["learned"] == 100


def test_columns_that_the_model_has_not_learned(jsonl):
    """They are compared before a micro-batch is learned, as the daemon compares them."""
    jsonl.write("good.jsonl", GOOD)
    before = jsonl.learn()
    jsonl.write("renamed.jsonl", GOOD.replace(b'"a"', b'"x"').replace(b'"b"', b'"z"'))
    assert (
        "source: the model has learned none of the inputs that arrive ('x', 'z'); it knows 'a', 'b'" in jsonl.refused()
    )
    assert before["learned"] == 100
    assert jsonl.job.account["learned"] == 100


def test_a_source_that_ends_with_too_many_dead_letters(tmp_path, spark):
    lines = Lines(tmp_path, spark, "jsonl", max_rate=0.1)
    lines.write("0.jsonl", GOOD[: GOOD.index(b"\n", 900) + 1] + b"bad\n" * 80)
    assert "more than dead_letters.max_rate (10%) allows" in lines.refused()


def test_a_damaged_checkpoint_location_is_named(jsonl):
    jsonl.write("0.jsonl", GOOD)
    jsonl.learn()
    (jsonl.job.state / "spark" / "metadata").write_text("")
    assert "state/spark" in jsonl.refused()


def test_a_file_that_was_written_long_ago_is_learned(jsonl):
    jsonl.write("0.jsonl", GOOD)
    assert jsonl.learn()["learned"] == 100
    jsonl.write("1.jsonl", GOOD)
    os.utime(jsonl.input / "1.jsonl", (1e9, 1e9))
    assert jsonl.learn()["learned"] == 200


def test_a_model_behind_the_checkpoint_location_is_refused_at_once(jsonl):
    jsonl.write("0.jsonl", GOOD)
    jsonl.learn()
    jsonl.write("1.jsonl", GOOD)
    jsonl.learn()
    newest = max(jsonl.job.state.glob("*.skc"))
    newest.write_bytes(newest.read_bytes()[:-9])
    assert "the ones between would be lost" in jsonl.refused()
    for path in jsonl.job.state.glob("*.skc*"):
        path.unlink()
    assert "has learned none of the earlier ones" in jsonl.refused()


def test_a_refused_fresh_start_keeps_the_checkpoints(jsonl, tmp_path):
    jsonl.write("0.jsonl", GOOD)
    location = f"file://{tmp_path}/log"
    assert jsonl.learn(location=location)["learned"] == 100
    kept = sorted(path.name for path in jsonl.job.state.iterdir())
    for _ in range(2):
        assert "name a new --checkpoint-location" in jsonl.refused(location=location, fresh=True)
        assert sorted(path.name for path in jsonl.job.state.iterdir()) == kept
    assert jsonl.learn(location=f"{location}-2", fresh=True)["learned"] == 100


def test_a_directory_of_any_name_keeps_sparks_log(tmp_path, spark):
    job = Lines(tmp_path / "H \u00f6 x%20y #1", spark, "jsonl")
    job.write("0.jsonl", GOOD)
    assert job.learn()["learned"] == 100
    assert (job.job.state / "spark" / "commits" / "0").exists()
    assert [path.name for path in tmp_path.iterdir()] == [job.folder.name]
    assert job.learn(fresh=True)["learned"] == 100


def test_a_stopped_job_enters_nothing():
    """The current micro-batch continues in its thread, and the directory may have another owner by then."""
    progress = JobProgress(*[Mock()] * 7)
    progress.close()
    with pytest.raises(DaemonError, match="the job has stopped"):
        progress.enter(None, None, None)
