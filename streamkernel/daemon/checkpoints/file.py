"""The format of a checkpoint file.

In this order: 8 bytes magic, the format version and the length of the head (unsigned 32-bit integers), the head (JSON),
the payload, the length of all that (unsigned 64 bits) and the SHA-256 of everything before it. Integers are
little-endian. The first 12 and the last 40 bytes keep their meaning in every version, so that a file of another version
can be distinguished from a broken one.
"""

from __future__ import annotations

import hashlib
import json
import os
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from streamkernel.connectors.file_system import IrregularFileError, open_regular
from streamkernel.connectors.os_reason import os_reason
from streamkernel.daemon.base import crash
from streamkernel.daemon.base.errors import CheckpointError, OtherFormatError, UnfitError
from streamkernel.daemon.checkpoints.directory import StateDirectory

__all__ = ["FORMAT_VERSION", "MAGIC", "MOST_HEAD", "Checkpoint", "encode_head", "read", "write_to"]

#: Begins with a byte that is no text and holds both line ends, so that a copy in text mode shows at once.
MAGIC = b"\x89SKC\r\n\x1a\n"
FORMAT_VERSION = 5
#: Counters, positions and marks take kilobytes; what is said to be longer is not read into memory.
MOST_HEAD = 64 * 2**20

_START = struct.Struct("<8sII")
_LENGTH = struct.Struct("<Q")
_TRAILER = _LENGTH.size + hashlib.sha256().digest_size


@dataclass(frozen=True)
class Checkpoint:
    """The contents of one checkpoint file."""

    number: int  # its place in the order of checkpoints, from 0
    header: dict[str, Any]  # what the daemon knows in addition to the model
    payload: bytes  # the model, as `dump_model` wrote it, and what waits for labels


def read(path: Path, directory: StateDirectory | None = None) -> Checkpoint:
    """Return the checkpoint in a file, verified; under whatever name, but no link.

    Parameters
    ----------
    path
        The file.
    directory
        Its directory where that is open: the file is found there, wherever the path leads by now.

    Raises
    ------
    OtherFormatError
        The file has another format version.
    CheckpointError
        The file cannot be read, is no checkpoint, is cut short or damaged; the message names it and the fault.

    """
    try:
        descriptor = open_regular(path, os.O_RDONLY) if directory is None else directory.open(path.name, os.O_RDONLY)
        with open(descriptor, "rb") as file:
            return _read(file, path)
    except IrregularFileError as error:
        raise CheckpointError(f"{path}: {os_reason(error)}") from None
    except OSError as error:
        raise CheckpointError(f"{path}: cannot be read: {os_reason(error)}") from error


def _read(file: BinaryIO, path: Path) -> Checkpoint:
    """Read and verify; lengths are checked before anything is read that is as long as they say."""
    size = os.fstat(file.fileno()).st_size
    start = file.read(_START.size)
    if not start.startswith(MAGIC):
        raise CheckpointError(f"{path}: not a checkpoint, its first bytes are wrong")
    body = size - _TRAILER
    if body < _START.size:
        raise CheckpointError(f"{path}: cut short, only {size} bytes are left")
    trailer = os.pread(file.fileno(), _TRAILER, body)
    (length,) = _LENGTH.unpack_from(trailer)
    damaged = CheckpointError(f"{path}: damaged or cut short, its SHA-256 does not fit its {size} bytes")
    # The writer of a file knew its length: a longer file, such as one with a hole in it, is not read.
    if length != body:
        raise damaged
    if size > _memory():
        _, _, head_length = _START.unpack(start)
        head = file.read(min(head_length, MOST_HEAD))
        if _START.size + head_length + _decode_head(head, path)[2] != body:
            raise damaged
        raise UnfitError(f"{path}: holds {size:,} bytes, more than this machine has memory")
    try:
        data = start + file.read(body - len(start))
    except MemoryError:
        raise UnfitError(f"{path}: its {size:,} bytes do not fit into memory") from None
    sha = hashlib.sha256(data)
    sha.update(trailer[: _LENGTH.size])
    if sha.digest() != trailer[_LENGTH.size :]:
        raise damaged
    _, version, head_length = _START.unpack_from(data)
    if version != FORMAT_VERSION:
        way = "update streamkernel" if version > FORMAT_VERSION else "start over with --fresh"
        raise OtherFormatError(f"{path}: has format {version}, this streamkernel reads {FORMAT_VERSION}: {way}")
    end = _START.size + head_length
    number, header, payload_length = _decode_head(data[_START.size : min(end, body)], path)
    if end + payload_length != body:
        raise CheckpointError(f"{path}: {body} bytes where its head announces {end + payload_length}")
    return Checkpoint(number, header, data[end:])


def _decode_head(head: bytes, path: Path) -> tuple[int, dict[str, Any], int]:
    if len(head) > MOST_HEAD:
        raise CheckpointError(f"{path}: its head holds {len(head):,} bytes, and none is longer than {MOST_HEAD:,}")
    try:
        decoded = json.loads(head, parse_constant=_refuse_constant)
        number, header, payload_length = decoded["number"], decoded["header"], decoded["payload_length"]
        sound = type(number) is int and type(payload_length) is int and isinstance(header, dict)
    except (ValueError, LookupError, TypeError, RecursionError):
        sound = False
    if not sound:
        raise CheckpointError(f"{path}: its head is not a JSON object with a number, a header and a payload length")
    return number, header, payload_length


def _refuse_constant(word: str) -> None:
    raise ValueError(f"JSON has no {word}")


def encode_head(number: int, header: Mapping[str, Any], payload_length: int) -> bytes:
    """Write the head of a checkpoint as JSON.

    Raises
    ------
    CheckpointError
        Where it holds what `read` would refuse: a number that is not finite, or more than `MOST_HEAD` bytes.

    """
    described = {"number": number, "payload_length": payload_length, "header": dict(header)}
    try:
        head = json.dumps(described, separators=(",", ":"), allow_nan=False).encode()
    except (ValueError, TypeError, RecursionError) as error:
        raise CheckpointError(f"the header of the checkpoint cannot be written: {error!s:.200}") from error
    if len(head) > MOST_HEAD:
        raise CheckpointError(
            f"the header of the checkpoint would hold {len(head):,} bytes, and none may be longer than {MOST_HEAD:,}"
        )
    return head


def write_to(file: BinaryIO, head: bytes, payload: bytes) -> None:
    """Write a checkpoint file durably, with what `encode_head` gave."""
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


def _memory() -> int:
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
