"""Reading checkpoints that another process writes: no lock, no change, and what `inspect` shows of them."""

from __future__ import annotations

import errno
import json
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streamkernel.daemon.base.errors import CheckpointError, UnfitError
from streamkernel.daemon.checkpoints import reader as reading
from streamkernel.daemon.checkpoints import store as store_module
from streamkernel.daemon.checkpoints.directory import StateDirectory
from streamkernel.daemon.checkpoints.file import Checkpoint, read
from streamkernel.daemon.checkpoints.reader import CheckpointReader
from streamkernel.daemon.checkpoints.store import CheckpointStore, checkpoint_files
from streamkernel.daemon.monitoring import inspection
from streamkernel.daemon.run_state.models import published_entry
from tests.daemon.conftest import Home, Launcher


def contents(checkpoint: Checkpoint) -> bytes:
    if checkpoint.payload == b"refused":
        raise CheckpointError("its payload is refused")
    if checkpoint.payload == b"unfit":
        raise UnfitError("another model")
    return checkpoint.payload


class Writer:
    """The process that writes; every checkpoint has another time."""

    def __init__(self, directory: Path, keep: int = 3) -> None:
        self.store = CheckpointStore(directory, keep)
        self.store.lock()
        self._time = 0

    def write(self, payload: bytes) -> Path:
        self._time += 1
        return self.store.write({"written": self._time}, payload)


@pytest.fixture
def writer(tmp_path: Path) -> Iterator[Writer]:
    made = Writer(tmp_path / "state")
    yield made
    made.store.close()


@pytest.fixture
def reader(writer: Writer) -> CheckpointReader[bytes]:
    return CheckpointReader(writer.store.directory, contents)


def damage(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-1] + b"?")


def test_a_file_that_is_removed_after_it_was_listed_is_looked_for_again(
    writer: Writer, monkeypatch: pytest.MonkeyPatch
) -> None:
    writer = Writer(writer.store.directory.parent / "other", keep=1)
    writer.write(b"one")
    listed = os.listdir
    left = [3]

    def listing(descriptor: int) -> list[str]:
        names = listed(descriptor)
        if left[0] and not any(name.startswith(".") for name in names):
            left[0] -= 1
            monkeypatch.setattr(os, "listdir", listed)
            writer.write(b"newer %d" % left[0])  # and what was listed is gone
            monkeypatch.setattr(os, "listdir", listing)
        return names

    monkeypatch.setattr(os, "listdir", listing)
    assert CheckpointReader(writer.store.directory, contents).newest() == b"newer 0"
    assert left == [0]
    writer.store.close()


def test_inspect_lists_again_what_was_removed_after_it_was_listed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = CheckpointStore(tmp_path / "state", keep=1)
    store.lock()
    store.write({}, b"one")
    left = [3]

    def listed(directory: Path) -> list[Path]:
        files = checkpoint_files(directory)
        if left[0]:
            left[0] -= 1
            store.write({}, b"newer %d" % left[0])  # and what was listed is gone
        return files

    monkeypatch.setattr(inspection, "checkpoint_files", listed)
    monkeypatch.setattr(inspection, "check_header", lambda _: None)
    monkeypatch.setattr(reading, "_PAUSE_SECONDS", 0.0)
    found = inspection.describe(store.directory)
    assert (found["number"], found["invalid"], left) == (3, [], [0])
    store.close()


def test_one_that_a_file_server_removed_while_it_was_read_is_looked_for_again(
    writer: Writer, reader: CheckpointReader[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    writer.write(b"one")
    left = [2]

    def stale(path: Path, directory: StateDirectory) -> Checkpoint:
        if left[0]:
            left[0] -= 1
            raise CheckpointError(f"{path}: cannot be read") from OSError(errno.ESTALE, "Stale file handle")
        return read(path, directory)

    monkeypatch.setattr(store_module, "read", stale)
    monkeypatch.setattr(reading, "_PAUSE_SECONDS", 0.0)
    assert reader.newest() == b"one"
    assert left == [0]


def test_of_a_damaged_or_refused_one_the_one_before_is_taken(writer: Writer, reader: CheckpointReader[bytes]) -> None:
    writer.write(b"one")
    writer.write(b"refused")
    damage(writer.write(b"three"))
    names = sorted(os.listdir(writer.store.directory))
    assert reader.newest() == b"one"
    assert reader.newer() is None
    assert sorted(os.listdir(writer.store.directory)) == names
    writer.write(b"four")
    assert reader.newer() == b"four"


def test_one_file(writer: Writer, tmp_path: Path) -> None:
    file = tmp_path / "champion.skc"
    with pytest.raises(CheckpointError, match=r"champion\.skc: there is no such directory or file"):
        CheckpointReader(file, contents).newest()
    shutil.copy(writer.write(b"one"), file)
    reader = CheckpointReader(file, contents)
    assert (reader.newest(), reader.newer()) == (b"one", None)
    shutil.copy(writer.write(b"two"), tmp_path / "next")
    (tmp_path / "next").rename(file)
    assert reader.newer() == b"two"
    shutil.copy(writer.write(b"unfit"), file)
    with pytest.raises(UnfitError, match=r"champion\.skc: another model"):
        reader.newer()


def test_what_is_no_directory_of_checkpoints(writer: Writer, tmp_path: Path) -> None:
    group = tmp_path / "group"
    Writer(group / "partition-0").write(b"one")
    with pytest.raises(CheckpointError, match=r"group: holds a directory for each .* such as .*group/partition-0"):
        CheckpointReader(group, contents).newest()
    (tmp_path / "link").symlink_to(writer.store.directory)
    with pytest.raises(CheckpointError, match="is a symbolic link"):
        CheckpointReader(tmp_path / "link", contents).newest()
    with pytest.raises(CheckpointError, match="holds no checkpoint yet: start the run that learns first"):
        CheckpointReader(writer.store.directory, contents).newest()
    damage(writer.write(b"one"))
    with pytest.raises(CheckpointError, match="or let the run that learns write the next one"):
        CheckpointReader(writer.store.directory, contents).newest()
    (tmp_path / "state" / "checkpoint-000000000009.skc").symlink_to(tmp_path / "nothing")
    with pytest.raises(CheckpointError):
        CheckpointReader(writer.store.directory, contents).newest()


def outcome(attempt: Callable[[], Any]) -> Any:
    """What an attempt gives, or the kind of error it raises."""
    try:
        return attempt()
    except CheckpointError as error:
        return type(error)


def test_a_directory_of_another_user(
    writer: Writer, reader: CheckpointReader[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    writer.write(b"one")

    def refuse(*_: object, **__: object) -> int:
        raise PermissionError(errno.EACCES, "Permission denied")

    with monkeypatch.context() as patch:
        patch.setattr(StateDirectory, "open", refuse)
        for attempt in (reader.newest, reader.newer):
            with pytest.raises(
                CheckpointError, match="state: cannot be read: Permission denied: join the group of the"
            ):
                attempt()
    assert reader.newer() == b"one"


STEPS = st.lists(st.sampled_from(["write", "damage", "refused", "unfit", "remove", "replace", "clear"]), max_size=12)


@settings(max_examples=25)
@given(STEPS)
def test_it_is_always_what_the_store_would_go_on_from(tmp_path: Path, steps: list[str]) -> None:
    directory = tmp_path / "any"
    shutil.rmtree(directory, ignore_errors=True)
    writer = Writer(directory)
    reader = CheckpointReader(directory, contents)
    held: bytes | None = None
    for number, step in enumerate(steps):
        newest = checkpoint_files(directory)[-1:]
        if step in ("write", "refused", "unfit"):
            writer.write(b"%d" % number if step == "write" else step.encode())
        elif step == "replace":
            writer._time += 1
            writer.store.replace({"written": writer._time}, b"%d" % number)
        elif step == "clear":
            writer.store.clear()
        elif newest:
            damage(newest[0]) if step == "damage" else newest[0].unlink()
        expected = outcome(lambda: writer.store.restore(contents, aside=False) or CheckpointError)
        found = outcome(reader.newer)
        if isinstance(found, bytes):
            held = found
        if found is None or isinstance(found, bytes):
            assert held == expected or expected is UnfitError  # told before, and nothing came since
        else:
            assert found == expected
    writer.store.close()


class TestInspect:
    def test_nothing_from_a_record_steers_the_terminal(self, home: Home, launcher: Launcher) -> None:
        name = "a\x1b[2J\x9b31m\u202e\u2028b\nc"
        lines = [json.dumps({name: n % 7, "y": "p\x1b[0m" if n % 2 else "q"}) for n in range(300)]
        (home.folder / "stream.jsonl").write_text("\n".join(lines) + "\n")
        adaptive = {"seed": 1, "n_features": 4, "metric_schedule": [50], "buffer_size": 60, "n_trees": 0}
        home.configure(
            source={"kind": "jsonl", "path": "stream.jsonl", "target": "y"},
            model=[{"streamkernel.AdaptiveKernelClassifier": adaptive}],
        )
        ran = launcher.call(home, "run", "config.yaml")
        assert ran.returncode == 0
        for arguments in (["out/state"], ["out/state", "--json"]):
            shown = launcher.call(home, "inspect", *arguments)
            assert shown.returncode == 0
            for text in (shown.stdout, shown.stderr, ran.stdout, ran.stderr):
                assert not set(text) & set("\x1b\x9b\u202e\u2028\r\x07")
        assert published_entry(json.loads(shown.stdout))["input_importance"] == {name: 1.0}

    def test_a_file_named_to_deceive_is_named_as_it_is(self, home: Home, launcher: Launcher) -> None:
        shown = launcher.call(home, "inspect", "no\x1b[31mthing")
        assert shown.returncode == 1
        assert shown.stderr == "streamkernel: no\\x1b[31mthing: cannot be read: No such file or directory\n"


def test_copies_by_hard_links_are_read(tmp_path: Path) -> None:
    store = CheckpointStore(tmp_path / "state")
    store.lock()
    path = store.write({"i": 1}, b"")
    store.close()
    (tmp_path / "copy").mkdir()
    (tmp_path / "copy" / path.name).hardlink_to(path)
    assert CheckpointStore(tmp_path / "copy").newest() == read(path)
    shutil.rmtree(tmp_path / "copy")
