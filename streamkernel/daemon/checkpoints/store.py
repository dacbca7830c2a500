"""Checkpoints on disk: one file each, whole or not there at all, and a lock that keeps a second daemon out.

A file is, in this order: 8 bytes magic, the format version and the length of the head (unsigned 32-bit integers), the
head (JSON), the payload, the length of all that (unsigned 64 bits) and the SHA-256 of everything before it. Integers
are little-endian. The first 12 and the last 40 bytes keep their meaning in every version, so that a file of a newer
version can be told from a broken one.
"""

import contextlib
import errno
import fcntl
import hashlib
import json
import logging
import os
import re
import socket
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from streamkernel.daemon.checkpoints import crash

#: Begins with a byte that is no text and holds both line ends, so that a copy in text mode shows at once.
MAGIC = b"\x89SKC\r\n\x1a\n"
FORMAT_VERSION = 1

_START = struct.Struct("<8sII")
_LENGTH = struct.Struct("<Q")
_TRAILER = _LENGTH.size + hashlib.sha256().digest_size
_NAME = re.compile(r"checkpoint-(\d{12,})\.skc")
_TEMPORARY = ".tmp"
_INVALID = ".invalid"
_OLD = ".old"
_LONGEST_HOLDER = 300

_log = logging.getLogger(__name__)


class CheckpointError(Exception):
    """A checkpoint cannot be used, or its directory is taken; the message says which, why and what to do."""


class DirectoryInUseError(CheckpointError):
    """Another live process holds the directory.

    Attributes
    ----------
    holder
        Which one, such as ``"process 17"`` or ``"process 17 on backup"``.

    """

    def __init__(self, message: str, holder: str) -> None:
        super().__init__(message)
        self.holder = holder


class NewerFormatError(CheckpointError):
    """The checkpoint is sound, but a newer version of streamkernel wrote it."""


@dataclass(frozen=True)
class Checkpoint:
    """What one file holds.

    Parameters
    ----------
    number
        Its place in the order of checkpoints, from 0.
    header
        What the daemon knows beside the model, as JSON values.
    payload
        The model, as `streamkernel.daemon.checkpoints.payload.dump_model` wrote it.

    """

    number: int
    header: dict[str, Any]
    payload: bytes


def read(path: Path) -> Checkpoint:
    """Read and verify one checkpoint file.

    Parameters
    ----------
    path
        The file, under whatever name.

    Raises
    ------
    NewerFormatError
        A newer version of streamkernel wrote the file.
    CheckpointError
        The file cannot be read, is no checkpoint, is cut short or damaged; the message names it and the fault.

    """
    try:
        data = path.read_bytes()
    except OSError as error:
        raise CheckpointError(f"{path}: cannot be read: {error.strerror}") from error
    if not data.startswith(MAGIC):
        raise CheckpointError(f"{path}: not a checkpoint, its first bytes are wrong")
    body = len(data) - _TRAILER
    if body < _START.size:
        raise CheckpointError(f"{path}: cut short, only {len(data)} bytes are left")
    (length,) = _LENGTH.unpack_from(data, body)
    if hashlib.sha256(memoryview(data)[: body + _LENGTH.size]).digest() != data[body + _LENGTH.size :]:
        raise CheckpointError(f"{path}: damaged or cut short, its SHA-256 does not fit its {len(data)} bytes")
    _, version, head_length = _START.unpack_from(data)
    if version > FORMAT_VERSION:
        raise NewerFormatError(
            f"{path}: format version {version}, this streamkernel reads up to {FORMAT_VERSION}: update streamkernel"
        )
    try:
        end = _START.size + head_length
        head = json.loads(data[_START.size : end])
        number, header, payload_length = head["number"], head["header"], head["payload_length"]
        sound = type(number) is int and type(payload_length) is int and isinstance(header, dict)
    except (ValueError, LookupError, TypeError, RecursionError):
        sound = False
    if not sound:
        raise CheckpointError(f"{path}: its head is no JSON object with a number, a header and a payload length")
    if length != body or end + payload_length != body:
        raise CheckpointError(f"{path}: {body} bytes where its head speaks of {end + payload_length}")
    return Checkpoint(number, header, data[end:body])


class CheckpointStore:
    """The checkpoints of one daemon: a directory, its lock, the order of its files.

    Files are called `checkpoint-000000000042.skc`; the number in the name is the order. A file found invalid gets
    `.invalid` appended, one set aside by `clear` gets `.old`.

    Parameters
    ----------
    directory
        Made on `lock` if it is not there.
    keep
        How many of the newest checkpoints stay, 3 by default.

    Raises
    ------
    ValueError
        `keep` is below 1.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> directory = pathlib.Path(tempfile.mkdtemp())
    >>> store = CheckpointStore(directory)
    >>> store.lock()
    >>> store.write({"consumed": 0}, b"a model").name
    'checkpoint-000000000000.skc'
    >>> store.newest()
    Checkpoint(number=0, header={'consumed': 0}, payload=b'a model')
    >>> store.close()

    """

    def __init__(self, directory: Path, keep: int = 3) -> None:
        if keep < 1:
            raise ValueError(f"keep must be at least 1, got {keep}")
        self.directory = Path(directory)
        self.keep = keep
        self._lock: BinaryIO | None = None

    def lock(self) -> None:
        """Take the directory, making it if needed, and remove what a killed daemon left half written.

        The lock is the kernel's (flock): it goes with the process, however that ends.

        Raises
        ------
        DirectoryInUseError
            Another live process holds the directory.
        OSError
            The directory cannot be made or written.

        """
        if self._lock is not None:
            return
        if not self.directory.is_dir():
            self.directory.mkdir(parents=True)
            _sync(self.directory.parent)
        lock = (self.directory / "lock").open("a+b")
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            lock.seek(0)
            holder = _shown(lock.read(_LONGEST_HOLDER))
            lock.close()
            raise DirectoryInUseError(
                f"{self.directory}: in use by another daemon ({holder}): stop it, or give this one a checkpoint "
                "directory of its own",
                holder,
            ) from error
        lock.truncate(0)
        lock.write(_holder())
        lock.flush()
        self._lock = lock
        for leftover in self.directory.glob(f".checkpoint-*{_TEMPORARY}"):
            leftover.unlink()

    def write(self, header: Mapping[str, Any], payload: bytes) -> Path:
        """Write the next checkpoint durably, then remove the oldest beyond `keep`.

        Parameters
        ----------
        header
            JSON values.
        payload
            The model's bytes.

        Returns
        -------
        The new file.

        Raises
        ------
        OSError
            The disk is full or failing. The checkpoints written before are as they were.
        CheckpointError
            The lock is another process's by now.
        RuntimeError
            The directory is not locked.

        """
        if self._lock is None:
            raise RuntimeError(f"{self.directory}: lock the directory before writing to it")
        self._check_that_it_is_ours()
        number = max(self._numbers(), default=-1) + 1
        path = self._path(number)
        temporary = self.directory / f".{path.name}{_TEMPORARY}"
        try:
            with temporary.open("wb") as file:
                _write(file, number, header, payload)
            crash.point("checkpoint-before-rename")
            temporary.rename(path)
            _sync(self.directory)
        except BaseException:
            with contextlib.suppress(OSError):
                temporary.unlink(missing_ok=True)
            raise
        crash.point("checkpoint-after-rename")
        self._prune()
        return path

    def newest(self) -> Checkpoint | None:
        """The newest valid checkpoint, None in a directory that has none.

        An invalid file is logged and renamed aside, and the next older one is tried.

        Raises
        ------
        NewerFormatError
            A newer version of streamkernel wrote the newest file: falling back would throw its records away.
        CheckpointError
            There are files, but none is valid; or one cannot be opened.

        """
        for number in sorted(self._numbers(), reverse=True):
            path = self._path(number)
            try:
                return self._read(path, number)
            except NewerFormatError:
                raise
            except CheckpointError as error:
                # A file that may not be opened is no broken file; one on a failing disk is.
                if isinstance(error.__cause__, OSError) and error.__cause__.errno != errno.EIO:
                    raise
                _log.warning("%s; renamed to %s, the next older checkpoint is tried", error, path.name + _INVALID)
                path.rename(f"{path}{_INVALID}")
        refused = sorted(self.directory.glob(f"checkpoint-*{_INVALID}"))
        if refused:
            raise CheckpointError(
                f"{self.directory}: none of its {len(refused)} checkpoints is valid, the newest is {refused[-1].name}: "
                "put a sound one back, or start anew with --fresh"
            )
        return None

    def clear(self) -> None:
        """Set all checkpoints aside, so that numbering begins at 0 again; those set aside before are removed."""
        for old in self.directory.glob(f"checkpoint-*{_OLD}"):
            old.unlink()
        # Oldest first: a kill in between leaves the newest, as if nothing had been cleared.
        for path in sorted(self.directory.glob("checkpoint-*.skc*")):
            path.rename(f"{path}{_OLD}")

    def close(self) -> None:
        """Release the lock; the file stays, for removing it would let two daemons lock two files of that name."""
        if self._lock is not None:
            self._lock.close()
            self._lock = None

    def _check_that_it_is_ours(self) -> None:
        """Look who wrote its name last: a file server may take the lock from a machine it does not hear for a while."""
        try:
            holder = (self.directory / "lock").read_bytes()
        except FileNotFoundError:
            raise CheckpointError(
                f"{self.directory}: its lock was removed, and another daemon may be at work there: nothing is written"
            ) from None
        if holder != _holder():
            raise CheckpointError(
                f"{self.directory}: was taken over by another daemon ({_shown(holder)}): nothing is written any more"
            )

    def _read(self, path: Path, number: int) -> Checkpoint:
        checkpoint = read(path)
        if checkpoint.number != number:
            raise CheckpointError(f"{path}: holds checkpoint {checkpoint.number}, so the file was renamed or copied")
        return checkpoint

    def _path(self, number: int) -> Path:
        return self.directory / f"checkpoint-{number:012d}.skc"

    def _numbers(self) -> list[int]:
        if not self.directory.is_dir():
            return []
        found = (_NAME.fullmatch(name) for name in os.listdir(self.directory))
        return [int(match[1]) for match in found if match]

    def _prune(self) -> None:
        for number in sorted(self._numbers())[: -self.keep]:
            try:
                self._path(number).unlink()
            except OSError as error:
                # The new checkpoint is durable: an old file too many is no reason to call it failed.
                _log.warning("%s: cannot be removed: %s", self._path(number), error.strerror)


def _holder() -> bytes:
    return f"{os.getpid()} {socket.gethostname()}".encode()


def _shown(holder: bytes) -> str:
    pid, _, host = holder.decode(errors="replace").partition(" ")
    return f"process {pid or 'unknown'}" + (f" on {host}" if host not in ("", socket.gethostname()) else "")


def _sync(directory: Path) -> None:
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _write(file: BinaryIO, number: int, header: Mapping[str, Any], payload: bytes) -> None:
    described = {"number": number, "payload_length": len(payload), "header": dict(header)}
    head = json.dumps(described, separators=(",", ":")).encode()
    start = _START.pack(MAGIC, FORMAT_VERSION, len(head)) + head
    length = _LENGTH.pack(len(start) + len(payload))
    sha = hashlib.sha256(start)
    sha.update(payload)
    sha.update(length)
    half = len(payload) // 2
    file.write(start)
    file.write(memoryview(payload)[:half])
    file.flush()
    crash.point("checkpoint-writing")
    file.write(memoryview(payload)[half:])
    file.write(length + sha.digest())
    file.flush()
    os.fsync(file.fileno())
