"""Damages the log of a broker as a failing disk would."""

from __future__ import annotations

import struct
from pathlib import Path

_HEADER = struct.Struct(">qiibIhi")
"""Of a batch (magic 2): base offset, length after these two, leader epoch, magic, checksum, attributes, last delta."""

_LENGTH_FROM = 12


def corrupt_batch(directory: Path, offset: int) -> range:
    """Flip a bit in the batch that holds an offset; the broker hands it out all the same.

    Parameters
    ----------
    directory
        The partition's, by `Broker.log_directory`. The broker should be running: when it starts after SIGKILL it looks
        for damage and cuts it away, with everything after it.
    offset
        A record's.

    Returns
    -------
    range
        The offsets of the batch: all are lost.

    Raises
    ------
    LookupError
        When no batch holds the offset.

    """
    for segment in sorted(directory.glob("*.log")):
        with segment.open("r+b") as log:
            while len(header := log.read(_HEADER.size)) == _HEADER.size:
                base, length, _, _, _, _, delta = _HEADER.unpack(header)
                end = log.tell() - _HEADER.size + _LENGTH_FROM + length
                if base <= offset <= base + delta:
                    log.seek(end - 1)
                    [last] = log.read(1)
                    log.seek(end - 1)
                    log.write(bytes([last ^ 1]))
                    return range(base, base + delta + 1)
                log.seek(end)
    raise LookupError(f"no batch of {directory.name} holds offset {offset}")
