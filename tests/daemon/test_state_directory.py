"""The state directory: nothing in it is followed or waited for, and nobody else reads or writes it."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import socket
import stat
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from streamkernel.daemon.assembly.plan import prepare
from streamkernel.daemon.base.errors import CheckpointError
from streamkernel.daemon.checkpoints.directory import StateDirectory
from streamkernel.daemon.checkpoints.file import read
from streamkernel.daemon.checkpoints.store import CheckpointStore
from streamkernel.daemon.runtime import run
from tests.daemon.conftest import Home, Launcher
from tests.daemon.test_checkpoint import sealed

HOLE = 60 * 2**30


def mode_of(path: Path) -> int:
    return stat.S_IMODE(path.lstat().st_mode)


@contextlib.contextmanager
def locked(store: CheckpointStore) -> Iterator[CheckpointStore]:
    store.lock()
    with contextlib.closing(store):
        yield store


@pytest.fixture
def begun(here: Home) -> Home:
    """A home whose daemon has written two checkpoints."""
    run(prepare(here.configure(checkpoint={"directory": "out/state", "every_records": 200})), max_records=240)
    return here


class TestWhatStandsUnderAName:
    """A name the daemon expects may lead elsewhere, or nowhere."""

    @pytest.mark.parametrize("name", ["lock", "learning", "learning-labels", "order.log", "order.log.tmp"])
    @pytest.mark.parametrize("link", [os.symlink, os.link])
    def test_no_link_is_followed(self, tmp_path: Path, name: str, link: Callable[[Path, Path], None]) -> None:
        victim = tmp_path / "victim"
        victim.write_text("precious\n")
        state = tmp_path / "state"
        state.mkdir()
        link(victim, state / name)
        with StateDirectory(state) as directory, pytest.raises(OSError, match=r"not a regular file|second name"):
            directory.open(name, os.O_RDWR | os.O_CREAT | os.O_TRUNC, alone=True)
        assert victim.read_text() == "precious\n"

    @pytest.mark.parametrize("name", ["lock", "learning"])
    def test_a_daemon_leaves_what_a_link_leads_to_and_says_why_it_ends(
        self, begun: Home, launcher: Launcher, name: str
    ) -> None:
        victim = begun.folder / "victim"
        victim.write_text("precious\n")
        (begun.folder / "out/state" / name).unlink()
        (begun.folder / "out/state" / name).symlink_to(victim)
        ended = launcher.call(begun, "run", "config.yaml")
        assert ended.returncode == 1
        assert f"out/state/{name}: is a symbolic link, not a regular file" in ended.stderr
        assert "Traceback" not in ended.stderr
        assert victim.read_text() == "precious\n"

    def test_a_file_half_written_is_no_link_to_elsewhere(self, tmp_path: Path) -> None:
        victim = tmp_path / "victim"
        victim.write_text("precious\n")
        store = CheckpointStore(tmp_path / "state")
        store.lock()
        (tmp_path / "state/.checkpoint-000000000000.skc.tmp").symlink_to(victim)
        assert not store.write({}, b"").is_symlink()
        store.close()
        assert victim.read_text() == "precious\n"

    def test_whatever_has_a_checkpoint_s_name_is_passed_over(self, begun: Home, launcher: Launcher) -> None:
        state = begun.folder / "out/state"
        sound = sorted(state.glob("*.skc"))[-1]

        def path(number: int) -> Path:
            return state / f"checkpoint-{number:012d}.skc"

        os.mkfifo(path(11))
        path(12).symlink_to(sound)
        path(13).mkdir()
        with socket.socket(socket.AF_UNIX) as unix, contextlib.chdir(state):
            unix.bind(path(14).name)
        shutil.copy(sound, path(15))
        os.truncate(path(15), HOLE)
        path(16).write_bytes(sealed(b'{"number":16,"payload_length":0,"header":{}}'))
        path(17).write_bytes(sealed(b"{}"))
        path(18).touch()
        path(19).write_bytes(
            sealed(json.dumps({"number": 19, "header": {"a": [1]}, "payload_length": 10**15}).encode())
        )
        # As long as its last bytes say, and a hole all the same.
        with path(20).open("wb") as file:
            file.write(sealed(b"{}")[:-40])
            file.truncate(HOLE)
            file.seek(0, os.SEEK_END)
            file.write(HOLE.to_bytes(8, "little") + bytes(32))
        ended = launcher.call(begun, "run", "config.yaml", "--max-records", "0")
        assert ended.returncode == 0, ended.stderr
        assert ended.stderr.count("the next older checkpoint is tried") == 10
        assert "Traceback" not in ended.stderr
        assert "from record 241 on" in ended.stderr
        for number, why in (
            (11, "is a FIFO, not a regular file"),
            (12, "is a symbolic link"),
            (13, "is a folder"),
            (14, "is a socket"),
            (15, "damaged or cut short"),
            (16, "its header cannot be used: run: Field required"),
            (17, "its head is not a JSON object"),
            (18, "not a checkpoint"),
            (19, r"\d+ bytes where its head announces"),
            (20, "its head is not a JSON object"),
        ):
            assert re.search(rf"{path(number).name}: {why}", ended.stderr)
            assert os.path.lexists(f"{path(number)}.invalid")

    def test_a_head_longer_than_any_is_refused_on_both_sides(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("streamkernel.daemon.checkpoints.file.MOST_HEAD", 1000)
        store = CheckpointStore(tmp_path)
        store.lock()
        with pytest.raises(CheckpointError, match="header of the checkpoint would hold"):
            store.write({"a": "x" * 1000}, b"")
        store.close()
        file = tmp_path / "long.skc"
        file.write_bytes(sealed(b" " * 1001))
        with pytest.raises(CheckpointError, match="none is longer than"):
            read(file)

    @pytest.mark.parametrize("number", [float("nan"), float("inf"), [1, {"a": float("-inf")}]])
    def test_no_number_is_written_that_json_does_not_have(self, tmp_path: Path, number: object) -> None:
        store = CheckpointStore(tmp_path)
        store.lock()
        store.write({}, b"")
        with pytest.raises(CheckpointError, match="header of the checkpoint cannot be written: Out of range"):
            store.write({"a": number}, b"")
        store.close()
        assert len(list(tmp_path.glob("*checkpoint*"))) == 1


class TestWhoMayEnter:
    """What records held is nobody else's to read, and what the daemon trusts nobody else's to write."""

    @pytest.mark.parametrize(("mode", "files", "folder"), [("0600", 0o600, 0o700), ("0640", 0o640, 0o750)])
    @pytest.mark.parametrize("before", [None, 0o777])
    def test_whatever_the_umask_and_whatever_it_was_before(
        self, here: Home, mode: str, files: int, folder: int, before: int | None
    ) -> None:
        state = here.folder / "out/state"
        if before is not None:
            state.mkdir(parents=True)
            (state / "checkpoint-000000000000.skc.old").touch()
            for path in (state, state / "checkpoint-000000000000.skc.old"):
                path.chmod(before)
        umask = os.umask(0)
        try:
            run(prepare(here.configure(checkpoint={"directory": "out/state", "mode": mode})), max_records=100)
        finally:
            os.umask(umask)
        assert mode_of(state) == folder
        assert {mode_of(path) for path in state.iterdir()} == {files}
        assert len(list(state.iterdir())) >= 4

    def test_a_group_is_let_in_and_shut_out_again(self, tmp_path: Path) -> None:
        for mode, folder in ((0o600, 0o700), (0o640, 0o750), (0o600, 0o700)):
            with locked(CheckpointStore(tmp_path, mode=mode)) as store:
                store.write({}, b"")
            assert mode_of(tmp_path) == folder
            assert {mode_of(path) for path in tmp_path.iterdir()} == {mode}

    def test_a_folder_with_other_things_is_left_as_it_is_and_told_of(
        self, tmp_path: Path, caplog: pytest.LogCaptureFixture
    ) -> None:
        (tmp_path / "mine.txt").touch()
        tmp_path.chmod(0o755)
        with locked(CheckpointStore(tmp_path)) as store:
            path = store.write({}, b"")
        assert (mode_of(tmp_path), mode_of(path)) == (0o755, 0o600)
        assert "has more than checkpoints (mine.txt)" in caplog.text
        tmp_path.chmod(0o777)
        with pytest.raises(
            CheckpointError, match="the directory is world-writable: give the daemon its own checkpoint"
        ):
            CheckpointStore(tmp_path).lock()

    def test_a_folder_that_others_write_to_and_that_cannot_be_closed_is_refused(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def failing(_: int, __: int) -> None:
            raise PermissionError(1, "Operation not permitted")

        tmp_path.chmod(0o770)
        monkeypatch.setattr(os, "fchmod", failing)
        with pytest.raises(CheckpointError, match=r"other users may write there, .* chmod it to 0700"):
            CheckpointStore(tmp_path).lock()

    def test_the_directory_itself_is_no_link(self, tmp_path: Path) -> None:
        (tmp_path / "real").mkdir()
        (tmp_path / "state").symlink_to("real")
        for act in (CheckpointStore.lock, CheckpointStore.newest):
            with pytest.raises(
                CheckpointError, match=r"state: is a symbolic link, .* name the folder it points to, .*real"
            ):
                act(CheckpointStore(tmp_path / "state"))
        (tmp_path / "above").symlink_to(tmp_path)
        with locked(CheckpointStore(tmp_path / "above/real")) as store:
            assert store.write({}, b"").exists()

    def test_a_mode_is_read_as_it_is_written_in_yaml(self, here: Home) -> None:
        text = here.config.read_text()
        for written, meant in (
            ("0640", "0640"),
            ('"0640"', "0640"),
            ("640", "0640"),
            ("0600", "0600"),
            ("600", "0600"),
        ):
            here.config.write_text(text.replace("every_records: 200", f"every_records: 200\n  mode: {written}"))
            settings = prepare(here.config).config.checkpoint
            assert settings is not None
            assert settings.mode == meant
        for wrong in ("0644", "0666", "yes", "0o600", "384.0"):
            here.config.write_text(text.replace("every_records: 200", f"every_records: 200\n  mode: {wrong}"))
            with pytest.raises(Exception, match=r"checkpoint\.mode"):
                prepare(here.config)
