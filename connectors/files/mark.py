"""What a checkpoint records of an output file: how far it was written, and how to know that it is this file."""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass
from typing import Any

from connectors.ports import Mark, SinkError

__all__ = ["END_BYTES", "FileMark", "digest"]

END_BYTES = 4096
"""How much of the beginning of a file, and of what stands before the mark, a mark covers."""

_DIGEST_DIGITS = hashlib.sha256().digest_size * 2


def digest(data: bytes) -> str:
    """Return the SHA-256 of bytes, in hexadecimal."""
    return hashlib.sha256(data).hexdigest()


@dataclass(frozen=True)
class FileMark:
    """The length of an output file at a checkpoint, with hashes of its contents.

    As JSON it is a mapping with these keys. The plain number that version 1 of the checkpoints holds instead is read,
    too: a length that says nothing of the contents.

    Parameters
    ----------
    length
        In bytes, as the file stands on the disk (compressed, where it is).
    head, tail
        The SHA-256, in hexadecimal, of the first and of the last 4,096 bytes up to that length (of all, where there
        are fewer); None in an old mark.
    inode
        The number of the file in its file system, by which an empty file is known; None in an old mark.

    """

    length: int
    head: str | None = None
    tail: str | None = None
    inode: int | None = None

    @classmethod
    def from_json(cls, path: object, mark: Mark) -> FileMark:
        """Read what a checkpoint holds for the file at `path`.

        Raises
        ------
        SinkError
            When it is not a mark of a file.

        """
        if not isinstance(mark, dict):
            if _is_count(mark):
                return cls(mark)
        elif mark.keys() == {"length", "head", "tail", "inode"}:
            sound = all(_is_count(mark[name]) for name in ("length", "inode"))
            if sound and all(_is_digest(mark[name]) for name in ("head", "tail")):
                return cls(**mark)
        raise SinkError(
            f"{path}: what the checkpoint says of it is not of a file: give another path to go on in a new file, or "
            "start anew with --fresh"
        )

    def to_json(self) -> dict[str, Any]:
        """Give what a checkpoint holds."""
        return {"length": self.length, "head": self.head, "tail": self.tail, "inode": self.inode}

    def names(self, descriptor: int) -> bool:
        """Say whether the mark can tell the open file from another one.

        A mark of no bytes is that of any file: then it must be the very file, which a copy is not.
        """
        status = os.fstat(descriptor)
        return self.length > 0 or status.st_size == 0 or status.st_ino == self.inode

    def difference(self, descriptor: int, *, text: bool) -> str | None:
        """Say in what the open file differs from the one that was marked, None where it does not.

        Parameters
        ----------
        descriptor
            Of the file, open for reading.
        text
            Whether the file holds lines as they are, not compressed.

        """
        size = os.fstat(descriptor).st_size
        if size < self.length:
            return f"the file holds {size:,} bytes, fewer than the {self.length:,} recorded at the checkpoint"
        if self.head is not None and digest(first_bytes(descriptor, self.length)) != self.head:
            return "its first bytes are not those recorded at the checkpoint, so it is another file"
        if self.tail is not None and digest(last_bytes(descriptor, self.length)) != self.tail:
            return f"its bytes before byte {self.length:,} are not those recorded at the checkpoint"
        if self.tail is None and text and last_bytes(descriptor, self.length)[-1:] not in (b"", b"\n"):
            return f"no line ends at byte {self.length:,}, where one did at the checkpoint"
        return None


def first_bytes(descriptor: int, length: int) -> bytes:
    """Read the first bytes of a file of which `length` bytes count."""
    return os.pread(descriptor, min(length, END_BYTES), 0)


def last_bytes(descriptor: int, length: int) -> bytes:
    """Read the last bytes of a file of which `length` bytes count."""
    size = min(length, END_BYTES)
    return os.pread(descriptor, size, length - size)


def _is_count(value: Any) -> bool:
    return type(value) is int and 0 <= value < 2**64


def _is_digest(value: Any) -> bool:
    return isinstance(value, str) and len(value) == _DIGEST_DIGITS
