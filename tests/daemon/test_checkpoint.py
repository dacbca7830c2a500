"""Checkpoint files: whole or not there, in order, and of one daemon only."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import re
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamkernel.daemon.base.errors import CheckpointError, OtherFormatError
from streamkernel.daemon.checkpoints.file import FORMAT_VERSION, MAGIC, Checkpoint, read
from streamkernel.daemon.checkpoints.store import CheckpointStore

HEADER = {"consumed": 3, "positions": [["a stream", 0, 17]], "name": "Ökonomie"}
PAYLOAD = bytes(range(256)) * 4
GOOD = {"number": 0, "payload_length": 0, "header": {}}


@pytest.fixture
def store(tmp_path: Path) -> Iterator[CheckpointStore]:
    store = CheckpointStore(tmp_path / "state", keep=3)
    store.lock()
    yield store
    store.close()


OTHER_FORMATS = pytest.mark.parametrize(
    ("version", "way"),
    [
        *((version, "start over with --fresh") for version in range(FORMAT_VERSION)),
        (FORMAT_VERSION + 1, "update streamkernel"),
    ],
)


def sealed(head: bytes, payload: bytes = b"", version: int = FORMAT_VERSION, length: int | None = None) -> bytes:
    """A file with whatever inside, its length and its SHA-256 right."""
    body = struct.pack("<8sII", MAGIC, version, len(head)) + head + payload
    body += struct.pack("<Q", len(body) if length is None else length)
    return body + hashlib.sha256(body).digest()


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("files") / "file.skc"


def refused(file: Path, data: bytes, why: str, error: type[CheckpointError] = CheckpointError) -> None:
    file.write_bytes(data)
    with pytest.raises(error, match=rf"file\.skc: {why}"):
        read(file)


def names(store: CheckpointStore) -> list[str]:
    return sorted(path.name for path in store.directory.iterdir() if path.name != "lock")


def spoil(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)


def test_what_is_written_is_read(store: CheckpointStore) -> None:
    path = store.write(HEADER, PAYLOAD)
    assert path.name == "checkpoint-000000000000.skc"
    assert read(path) == store.newest() == Checkpoint(0, HEADER, PAYLOAD)


def test_numbers_go_up_and_the_newest_stay(store: CheckpointStore) -> None:
    for i in range(12):
        store.write({"i": i}, b"")
    assert names(store) == [f"checkpoint-{i:012d}.skc" for i in (9, 10, 11)]
    store.close()
    again = CheckpointStore(store.directory)
    again.lock()
    assert again.write({}, b"").name == "checkpoint-000000000012.skc"
    again.close()


def test_a_new_directory_has_none(tmp_path: Path) -> None:
    assert CheckpointStore(tmp_path / "not" / "there").newest() is None


def test_keep_is_at_least_one(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="keep must be at least 1, got 0"):
        CheckpointStore(tmp_path, keep=0)


def test_writing_needs_the_lock(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError, match="lock the directory"):
        CheckpointStore(tmp_path).write({}, b"")


@given(st.integers(0, 2**32), st.integers(1, 255))
def test_any_changed_byte_is_found(file: Path, place: int, change: int) -> None:
    data = bytearray(sealed(json.dumps({**GOOD, "payload_length": 9}).encode(), b"a payload"))
    data[place % len(data)] ^= change
    refused(file, data, "(not a checkpoint|damaged or cut short)")


def test_any_cut_is_found(file: Path) -> None:
    data = sealed(json.dumps({**GOOD, "payload_length": 9}).encode(), b"a payload")
    for length in range(len(data)):
        refused(file, data[:length], "(not a checkpoint|cut short|damaged or cut short)")
    refused(file, data + b"\0", "damaged")


@pytest.mark.parametrize(
    "data",
    [
        sealed(b"no JSON"),
        sealed(b"[]"),
        sealed(b"\xff"),
        sealed(b"[" * 100_000),
        sealed(b'{"number": 0}'),
        sealed(json.dumps({**GOOD, "number": "0"}).encode()),
        sealed(json.dumps({**GOOD, "header": []}).encode()),
        sealed(json.dumps({**GOOD, "payload_length": None}).encode()),
        sealed(json.dumps({**GOOD, "payload_length": 5}).encode()),
        sealed(json.dumps({**GOOD, "payload_length": -1}).encode()),
        sealed(json.dumps(GOOD).encode(), length=5),
    ],
)
def test_a_head_that_lies_is_refused_though_its_sum_is_right(file: Path, data: bytes) -> None:
    refused(file, data, r"(its head is no|\d+ bytes where its head|damaged or cut short)")


@OTHER_FORMATS
def test_another_format_says_what_to_do(file: Path, version: int, way: str) -> None:
    data = sealed(b"whatever it is", version=version)
    refused(file, data, f"has format {version}, this streamkernel reads {FORMAT_VERSION}: {way}$", OtherFormatError)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match=r"nothing\.skc: cannot be read: No such file"):
        read(tmp_path / "nothing.skc")


def test_an_invalid_file_is_set_aside_and_the_older_one_used(
    store: CheckpointStore, caplog: pytest.LogCaptureFixture
) -> None:
    store.write({"i": 0}, b"old")
    spoil(store.write({"i": 1}, b"new"))
    assert store.newest() == Checkpoint(0, {"i": 0}, b"old")
    assert names(store) == ["checkpoint-000000000000.skc", "checkpoint-000000000001.skc.invalid"]
    assert "damaged" in caplog.text


def test_where_none_is_valid_the_start_is_refused_also_the_second_time(store: CheckpointStore) -> None:
    for i in range(3):
        spoil(store.write({"i": i}, b""))
    before = names(store)
    for _ in range(2):
        with pytest.raises(CheckpointError, match=r"none of its 3 checkpoints is valid, the newest .*2\.skc.*--fresh"):
            store.newest()
    assert names(store) == before
    store.clear()
    assert store.newest() is None


@OTHER_FORMATS
def test_another_format_is_no_reason_to_fall_back(store: CheckpointStore, version: int, way: str) -> None:
    store.write({"i": 0}, b"")
    other = store.write({"i": 1}, b"")
    other.write_bytes(sealed(b"?", version=version))
    with pytest.raises(OtherFormatError, match=f"^{other}: .*: {way}$"):
        store.newest()
    assert other.exists()


def test_a_copy_under_another_number_is_set_aside(store: CheckpointStore, caplog: pytest.LogCaptureFixture) -> None:
    old = store.write({"i": 0}, b"")
    old.with_name("checkpoint-000000000007.skc").write_bytes(old.read_bytes())
    assert store.newest() == Checkpoint(0, {"i": 0}, b"")
    assert "holds checkpoint 0" in caplog.text


@pytest.mark.parametrize(("number", "falls_back"), [(errno.EIO, True), (errno.EACCES, False)])
def test_a_broken_disk_is_fallen_back_from_and_a_closed_door_is_not(
    store: CheckpointStore, monkeypatch: pytest.MonkeyPatch, number: int, falls_back: bool
) -> None:
    store.write({"i": 0}, b"")
    store.write({"i": 1}, b"")
    whole = os.open

    def failing(path: Any, *given: Any, **named: Any) -> int:
        if path == "checkpoint-000000000001.skc":
            raise OSError(number, os.strerror(number))
        return whole(path, *given, **named)

    monkeypatch.setattr(os, "open", failing)
    if falls_back:
        assert store.newest() == Checkpoint(0, {"i": 0}, b"")
    else:
        with pytest.raises(CheckpointError, match="Permission denied"):
            store.newest()
        assert len(names(store)) == 2


def test_clear_sets_aside_once(store: CheckpointStore) -> None:
    store.write({"run": 1}, b"")
    spoil(store.write({"run": 1}, b""))
    store.newest()
    store.clear()
    assert names(store) == ["checkpoint-000000000000.skc.old", "checkpoint-000000000001.skc.invalid.old"]
    assert store.newest() is None
    assert store.write({"run": 2}, b"").name == "checkpoint-000000000000.skc"
    store.clear()
    assert names(store) == ["checkpoint-000000000000.skc.old"]
    assert read(store.directory / "checkpoint-000000000000.skc.old").header == {"run": 2}


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EIO])
@pytest.mark.parametrize("nth", [1, 2])
def test_a_failing_disk_leaves_the_old_checkpoints(
    store: CheckpointStore, monkeypatch: pytest.MonkeyPatch, number: int, nth: int
) -> None:
    store.write({"i": 0}, b"old")
    calls = 0

    def failing(_: int) -> None:
        nonlocal calls
        calls += 1
        if calls == nth:  # the first is for the file, the second for the directory
            raise OSError(number, os.strerror(number))

    monkeypatch.setattr(os, "fsync", failing)
    with pytest.raises(OSError, match=re.escape(os.strerror(number))) as raised:
        store.write({"i": 1}, b"new")
    assert raised.value.errno == number
    assert not [name for name in names(store) if name.endswith(".tmp")]
    assert read(store.directory / "checkpoint-000000000000.skc").payload == b"old"
    store.write({"i": 2}, b"newer")
    newest = store.newest()
    assert newest is not None
    assert newest.payload == b"newer"


def test_an_old_file_that_cannot_be_removed_is_no_failure(
    store: CheckpointStore, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    for i in range(3):
        store.write({"i": i}, b"")

    whole = os.unlink

    def failing(path: Any, **named: Any) -> None:
        if not str(path).startswith("."):
            raise OSError(errno.EIO, "Input/output error")
        whole(path, **named)

    monkeypatch.setattr(os, "unlink", failing)
    store.write({"i": 3}, b"")
    assert len(names(store)) == 4
    assert "cannot be removed" in caplog.text


def test_a_second_daemon_is_refused(store: CheckpointStore) -> None:
    store.lock()  # again, by the same one: nothing to do
    second = CheckpointStore(store.directory)
    with pytest.raises(CheckpointError, match=rf"in use by another daemon \(process {os.getpid()}\): stop it"):
        second.lock()
    store.close()
    second.lock()
    second.close()
