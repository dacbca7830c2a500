"""Errors of the operating system in words, with and without a number, and a folder that cannot be made."""

from __future__ import annotations

import errno
import socket
import ssl
from pathlib import Path

import pytest

from streamkernel.connectors.file_system import make_folder
from streamkernel.connectors.files.bytes import system_error
from streamkernel.connectors.os_reason import os_reason, reason_and_file
from streamkernel.daemon.base.errors import CheckpointError
from streamkernel.daemon.checkpoints import file
from streamkernel.daemon.checkpoints.directory import StateDirectory
from streamkernel.daemon.checkpoints.store import CheckpointStore
from streamkernel.daemon.config.document import read
from streamkernel.daemon.config.problems import ConfigError
from streamkernel.daemon.failure import sentence

WITHOUT_NUMBER = OSError("the share is gone")


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (PermissionError(errno.EACCES, "Permission denied", "a.csv"), "Permission denied"),
        (WITHOUT_NUMBER, "the share is gone"),
        (OSError(errno.ENOSPC, None), "No space left on device"),
        (ConnectionResetError(), "ConnectionResetError"),
        (ssl.SSLError("the handshake failed"), "the handshake failed"),
        (ssl.SSLError(1, "[SSL] bad"), "[SSL] bad"),
        (socket.gaierror("no such host"), "no such host"),
        (socket.gaierror(socket.EAI_NONAME, "Name or service not known"), "Name or service not known"),
    ],
)
def test_a_reason_is_in_words(error: OSError, reason: str) -> None:
    assert os_reason(error) == reason
    assert reason_and_file(error) == sentence(error) == (f"a.csv: {reason}" if error.filename else reason)


def test_messages_have_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> bytes:
        raise WITHOUT_NUMBER

    assert str(system_error("a.csv", WITHOUT_NUMBER)) == "a.csv: cannot be read: the share is gone"
    directory = StateDirectory(tmp_path)
    with directory, pytest.raises(OSError, match="the share is gone") as raised, directory.naming("one"):
        refuse()
    assert sentence(raised.value) == f"{tmp_path / 'one'}: the share is gone"
    monkeypatch.setattr(file, "open_regular", refuse)
    with pytest.raises(file.CheckpointError, match=r"one\.skc: .*: the share is gone$"):
        file.read(tmp_path / "one.skc")
    monkeypatch.setattr(Path, "read_bytes", refuse)
    with pytest.raises(ConfigError) as refused:
        read(tmp_path / "config.yaml")
    assert refused.value.lines == [f"{tmp_path / 'config.yaml'}: cannot be read: the share is gone"]


def test_a_folder_is_made_once(tmp_path: Path) -> None:
    for _ in range(2):
        make_folder(tmp_path / "a/b")
    assert (tmp_path / "a/b").is_dir()


@pytest.mark.parametrize("inner", ["", "inner"])
def test_a_file_in_the_way_is_no_directory(tmp_path: Path, inner: str) -> None:
    file = tmp_path / "file"
    file.touch()
    with pytest.raises(NotADirectoryError, match="/file is not a folder"):
        make_folder(file / inner)
    with pytest.raises(CheckpointError, match=r"lock: cannot be written: .*/file is not a folder$"):
        CheckpointStore(file / inner).lock()
