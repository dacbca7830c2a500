"""The mark of an output file in a checkpoint: how far it was written, and how to know that it is this file."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from typing import NamedTuple

from streamkernel.connectors.file_system import file_id
from streamkernel.connectors.ports import Mark, SinkError

# A mark covers this many bytes at the beginning of a file, and before the mark.
_END_BYTES = 4096


class FileMark(NamedTuple):
    """The length of an output file at a checkpoint, with hashes of its contents.

    As JSON it is a mapping with these keys.

    Parameters
    ----------
    length
        In bytes, as the file is on the disk (compressed, where it is).
    head, tail
        The SHA-256, in hexadecimal, of the first and of the last 4,096 bytes up to that length (of all, where there
        are fewer).
    file
        Its `file_id`, by which an empty file is known; None where the system has none.

    """

    length: int
    head: str
    tail: str
    file: list[int] | None

    @classmethod
    def from_json(cls, path: Path, mark: Mark | None) -> FileMark | None:
        """Read the mark of the file at `path` from a checkpoint; SinkError where it is not a mark of a file."""
        if mark is None:
            return None
        if isinstance(mark, dict) and mark.keys() == set(cls._fields) and type(mark["length"]) is int:
            return cls(**mark)
        raise SinkError(
            f"{path}: its mark in the checkpoint is not from a file: give another path to continue in a new file, "
            "or start over with --fresh"
        )

    @classmethod
    def of(cls, descriptor: int, length: int) -> FileMark:
        """Return the mark of an open file that has this length."""
        head, tail = _digests(descriptor, length)
        return cls(length, head, tail, file_id(descriptor))

    def names(self, descriptor: int) -> bool:
        """Return whether the mark can distinguish the open file from another one.

        A mark of no bytes fits any file. Then it must be the very file, which a copy is not.
        """
        return self.length > 0 or (self.file is not None and file_id(descriptor) == self.file)

    def difference(self, descriptor: int) -> str | None:
        """Return how a file, open for reading, differs from the marked one; None where it does not."""
        size = os.fstat(descriptor).st_size
        if size < self.length:
            return f"the file holds {size:,} bytes, fewer than the {self.length:,} recorded at the checkpoint"
        head, tail = _digests(descriptor, self.length)
        if head != self.head:
            return "its first bytes are not those recorded at the checkpoint, so it is another file"
        if tail != self.tail:
            return f"its bytes before byte {self.length:,} are not those recorded at the checkpoint"
        return None

    def is_of(self, descriptor: int) -> bool:
        """Return whether an open file is the marked one, or a copy of it."""
        return self.names(descriptor) and self.difference(descriptor) is None


def _digests(descriptor: int, length: int) -> list[str]:
    """Return the SHA-256 of the first and of the last bytes of the first `length` bytes of a file."""
    size = min(length, _END_BYTES)
    return [hashlib.sha256(os.pread(descriptor, size, offset)).hexdigest() for offset in (0, length - size)]
