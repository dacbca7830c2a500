"""`streamkernel migrate`: a checkpoint of an earlier format becomes the next one, in the newest."""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from streamkernel.daemon.base.errors import CheckpointError, DirectoryInUseError, UnfitError
from streamkernel.daemon.checkpoints.file import FORMAT_VERSION, Checkpoint, read
from streamkernel.daemon.checkpoints.renamed import renamed
from streamkernel.daemon.checkpoints.store import CheckpointStore
from streamkernel.daemon.cli import main
from streamkernel.daemon.migrate import migrate
from streamkernel.daemon.recovery import resume
from streamkernel.daemon.runtime import run
from streamkernel.daemon.wiring.plan import prepare
from tests.daemon.labels_stream import adds_up
from tests.golden.make import CASES, HALF

PLACES = sorted((Path(__file__).parents[1] / "golden").glob("checkpoints-v*"))
SUM = hashlib.sha256().digest_size
EARLIER = [place for place in PLACES if place.name != f"checkpoints-v{FORMAT_VERSION}"]


@pytest.fixture(params=EARLIER, ids=lambda place: place.name)
def place(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of all cases of an earlier format, the working directory in it."""
    copy = tmp_path / "golden"
    shutil.copytree(request.param, copy)
    monkeypatch.chdir(copy)
    return copy


@pytest.fixture
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A state directory of the format before this one."""
    shutil.copytree(EARLIER[-1] / "growing", tmp_path / "growing")
    monkeypatch.chdir(tmp_path / "growing")
    return Path("state")


def files(state: Path) -> list[Path]:
    return sorted(state.glob("checkpoint-*"))


def start(checkpoint: Checkpoint) -> resume.Start:
    return resume.restore(prepare(Path("config.yaml")), checkpoint)


def state_of(found: resume.Start) -> str | dict[str, float]:
    model = found.model
    return model.state_digest() if hasattr(model, "state_digest") else dict(model["LogisticRegression"].weights)


@pytest.mark.parametrize("case", [case for case in CASES if (EARLIER[-1] / case).exists()])  # the rest came later
def test_a_golden_checkpoint_is_written_in_the_newest_format(
    place: Path, case: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(place / case)
    (old,) = files(Path("state"))
    content, before = old.read_bytes(), read(old)
    assert before.format < FORMAT_VERSION
    assert main(["migrate", "state"]) == 0
    _, new = files(Path("state"))
    after = read(new)
    assert capsys.readouterr().out == (
        f"state: checkpoint {before.number} of format {before.format} is written as {new.name} of format "
        f"{FORMAT_VERSION}\n"
    )
    assert old.read_bytes() == content
    assert (after.number, after.format) == (before.number + 1, FORMAT_VERSION)
    apart = {"model", "versions"}
    assert {key: after.header[key] for key in after.header.keys() - apart} == {
        key: before.header[key] for key in before.header.keys() - apart
    }
    was, now = start(before), start(after)
    assert state_of(now) == state_of(was)
    assert (now.positions, now.outputs, now.counts) == (was.positions, was.outputs, was.counts)
    assert main(["migrate", "state"]) == 0
    assert capsys.readouterr().out == (
        f"state: checkpoint {after.number} is of format {FORMAT_VERSION}: nothing is to be done\n"
    )
    assert len(files(Path("state"))) == 2
    if case != "kafka":
        run(prepare(Path("config.yaml")))
        newest = CheckpointStore(Path("state")).newest()
        assert newest is not None
        assert newest.header["account"]["consumed"] > HALF
        if case == "late-labels":
            adds_up(newest.header)


def test_keys_are_renamed_where_they_stand() -> None:
    keys = {"a": "b", "labels.a": "c", "outputs.*.mark.a": "d"}
    header = {"a": {"a": 1}, "labels": {"a": 2, "z": 3}, "outputs": {"x": {"mark": {"a": 4}}, "y": {"mark": 5}}}
    assert renamed(header, keys) == {
        "b": {"a": 1},
        "labels": {"c": 2, "z": 3},
        "outputs": {"x": {"mark": {"d": 4}}, "y": {"mark": 5}},
    }
    assert renamed({"labels": None, "outputs": []}, keys) == {"labels": None, "outputs": []}


def test_no_checkpoint_is_migrated_under_a_daemon(state: Path) -> None:
    with contextlib.closing(CheckpointStore(state)) as daemon:
        daemon.lock()
        with pytest.raises(DirectoryInUseError, match=r"^state: in use by another daemon \(process "):
            migrate(state)
        assert main(["migrate", "state"]) == 1
    assert len(files(state)) == 1


def test_a_directory_without_checkpoints_is_left_alone(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match="/none: holds no checkpoint"):
        migrate(tmp_path / "none")
    assert not (tmp_path / "none").exists()


def test_a_damaged_newest_checkpoint_is_passed_over(state: Path) -> None:
    (good,) = files(state)
    (state / "checkpoint-000000000002.skc").write_bytes(b"not a checkpoint")
    (line,) = migrate(state)
    assert line.startswith("state: checkpoint 1 of format ")
    assert [path.name for path in files(state)] == [
        good.name,
        "checkpoint-000000000002.skc",
        "checkpoint-000000000002.skc.invalid",
    ]


def test_a_group_is_migrated_as_a_whole(state: Path) -> None:
    group = Path("group")
    for partition in (0, 1):
        shutil.copytree(state, group / f"partition-{partition}")
    lines = migrate(group)
    assert [line.partition(": ")[0] for line in lines] == ["group/partition-0", "group/partition-1"]
    assert all(len(files(group / f"partition-{partition}")) == 2 for partition in (0, 1))


def test_permissions_and_older_checkpoints_stay(state: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (old,) = files(state)
    with monkeypatch.context() as patch, contextlib.closing(CheckpointStore(state, keep=9)) as store:
        patch.setattr("streamkernel.daemon.checkpoints.file.FORMAT_VERSION", FORMAT_VERSION - 1)
        store.lock()
        for _ in range(4):
            store.write(read(old).header, read(old).payload)
    state.chmod(0o750)
    for path in files(state):
        path.chmod(0o640)
    migrate(state)
    assert [path.stat().st_mode & 0o777 for path in files(state)] == [0o640] * 6
    assert state.stat().st_mode & 0o777 == 0o750


def test_variables_are_those_of_the_environment(state: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    config = Path("config.yaml")
    config.write_text(config.read_text().replace("max_features: 64", "max_features: ${MOST}"))
    monkeypatch.setenv("MOST", "64")
    with monkeypatch.context() as patch:
        patch.setattr("streamkernel.daemon.checkpoints.file.FORMAT_VERSION", FORMAT_VERSION - 1)
        run(prepare(config))
    assert read(files(state)[-1]).format == FORMAT_VERSION - 1
    monkeypatch.delenv("MOST")
    with pytest.raises(UnfitError, match="the environment variable MOST is not set"):
        migrate(state)
    monkeypatch.setenv("MOST", "-64")
    with pytest.raises(UnfitError, match=r"model\[0\].max_features: must be .*\$\{MOST\}"):
        migrate(state)
    monkeypatch.setenv("MOST", "64")
    assert len(migrate(state)) == 1


def replace_steps(state: Path, monkeypatch: pytest.MonkeyPatch, steps: Any) -> None:
    """Write the one checkpoint anew in the format before, with other steps in the model's configuration."""
    (old,) = files(state)
    before = read(old)
    with monkeypatch.context() as patch, contextlib.closing(CheckpointStore(state)) as store:
        patch.setattr("streamkernel.daemon.checkpoints.file.FORMAT_VERSION", FORMAT_VERSION - 1)
        store.lock()
        store.replace({**before.header, "config": {**before.header["config"], "model": steps}}, before.payload)


def test_a_checkpoint_without_steps_of_a_model_is_refused(state: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    replace_steps(state, monkeypatch, None)
    with pytest.raises(CheckpointError, match=r"config\.model: must be a list of steps"):
        migrate(state)


def test_what_was_written_and_cannot_be_read_back_is_told(state: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(CheckpointStore, "write", lambda self, *_: self.directory / "checkpoint-000000000001.skc")
    with pytest.raises(CheckpointError, match="does not hold what was written"):
        migrate(state)


def as_the_format_before(path: Path) -> None:
    """Mark a checkpoint of a model of River's, whose payload is the same in both, as one of the format before."""
    body = bytearray(path.read_bytes()[:-SUM])
    body[8:12] = (FORMAT_VERSION - 1).to_bytes(4, "little")
    path.write_bytes(body + hashlib.sha256(body).digest())


# Arguments that JSON has no numbers or keys for, and text that YAML would read otherwise than JSON.
ODD_ARGUMENTS = {
    "an infinity": "river.linear_model.LogisticRegression: {clip_gradient: .inf}",
    "boolean keys": (
        "river.imblearn.RandomUnderSampler: "
        "{classifier: {river.naive_bayes.GaussianNB: {}}, desired_dist: {true: 0.5, false: 0.5}, seed: 1}"
    ),
    "keys in quotes": (
        "river.imblearn.RandomUnderSampler: "
        "{classifier: {river.naive_bayes.GaussianNB: {}}, desired_dist: {'true': 0.5, 'NaN': 0.5}, seed: 1}"
    ),
    "text": (
        "river.compose.Pipeline: {args: [{river.compose.Select: "
        r'{args: [a, b, "\x7f", "\u2028x", "\u0085", 1e-6, "1e-6", "yes", "NaN", "null", "=", 😀]}}, '
        "river.linear_model.LogisticRegression: {l2: '${L2}'}]}"
    ),
}


@pytest.mark.parametrize("model", ODD_ARGUMENTS.values(), ids=ODD_ARGUMENTS)
def test_arguments_are_those_that_the_configuration_had(
    model: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("L2", "1e-3")
    Path("stream.csv").write_text("a,b,y\n" + "1,2,true\n2,1,false\n" * 10)
    Path("config.yaml").write_text(
        "source: {kind: csv, path: stream.csv, target: y, target_type: bool}\n"
        f"model:\n  - {model}\ncheckpoint: {{directory: state}}\nmetrics: null\n"
        "dead_letters: {kind: none, max_rate: 1}\n"  # the models are built, whether or not they can learn these records
    )
    run(prepare(Path("config.yaml")))
    newest = files(Path("state"))[-1]
    as_the_format_before(newest)
    (line,) = migrate(Path("state"))
    assert line.startswith(f"state: checkpoint 1 of format {FORMAT_VERSION - 1} is written as ")
    assert start(read(files(Path("state"))[-1])).counts == start(read(newest)).counts


def test_a_configuration_that_is_nested_too_deeply_is_refused(state: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    steps: list[Any] = []
    for _ in range(400):
        steps = [steps]
    replace_steps(state, monkeypatch, steps)
    with pytest.raises(CheckpointError, match=r"config\.model: nested too deeply"):
        migrate(state)


def test_the_newest_format_asks_for_no_model(state: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    config = Path("config.yaml")
    config.write_text(config.read_text().replace("max_features: 64", "max_features: ${MOST}"))
    monkeypatch.setenv("MOST", "64")
    run(prepare(config))
    monkeypatch.delenv("MOST")
    (line,) = migrate(state)
    assert line.endswith("nothing is to be done")


def test_a_package_under_imports_is_asked_for(state: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (old,) = files(state)
    before = read(old)
    steps = [{"mine.Model": {}}]
    with monkeypatch.context() as patch, contextlib.closing(CheckpointStore(state)) as store:
        patch.setattr("streamkernel.daemon.checkpoints.file.FORMAT_VERSION", FORMAT_VERSION - 1)
        store.lock()
        store.replace({**before.header, "config": {**before.header["config"], "model": steps}}, before.payload)
    with pytest.raises(UnfitError, match=r"list its package under imports \(--imports PACKAGE\)$"):
        migrate(state)


def test_a_link_makes_no_directory_more_open(state: Path) -> None:
    (old,) = files(state)
    old.chmod(0o600)
    other = Path("other.skc")
    other.write_bytes(b"")
    other.chmod(0o640)
    (state / "checkpoint-000000000009.skc").symlink_to(other.resolve())
    (state / "checkpoint-000000000010.skc").symlink_to("nowhere")
    migrate(state)
    assert {path.lstat().st_mode & 0o777 for path in files(state) if not path.is_symlink()} == {0o600}


def test_what_is_no_directory_is_told(state: Path) -> None:
    (old,) = files(state)
    with pytest.raises(NotADirectoryError, match="Not a directory"):
        migrate(old)


def test_a_full_disk_is_named(state: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch:
        patch.setattr("streamkernel.daemon.checkpoints.store.write_to", full)
        with pytest.raises(OSError, match=r"No space left on device: 'state/\.checkpoint-000000000002\.skc\.tmp'"):
            migrate(state)
    with monkeypatch.context() as patch:
        patch.setattr(os, "pwrite", full)
        with pytest.raises(OSError, match="No space left on device: 'state/lock'"):
            migrate(state)
    assert len(files(state)) == 1
