"""Decompresses a batch up to a bound, where kafka-python would give it all the memory it asks for.

A few kilobytes may be made of a gigabyte of zeros, and a length in a header may be any number.
"""

from __future__ import annotations

import gzip
import io
import struct
from collections.abc import Callable, Iterator, Mapping

from kafka import codec as codecs
from kafka.errors import CorruptRecordError, UnsupportedCodecError

__all__ = ["TooLargeError", "decompress"]

_CHUNK = 2**20
_BLOCK_LENGTH = struct.Struct(">i")
# What the framing of snappy begins with that Java's clients use, with two versions after it.
_FRAMING, _FRAMING_LENGTH = b"\x82SNAPPY\0", 16


class TooLargeError(Exception):
    """A batch is larger than the bound once it is decompressed."""


def decompress(compression: int, data: bytes, most: int) -> bytes:
    """Return the decompressed records of a batch, at most `most` bytes.

    The codec is numbered as in a batch: 1 gzip, 2 snappy, 3 LZ4, 4 Zstandard.

    Raises
    ------
    TooLargeError
        Where more would come out.
    UnsupportedCodecError
        Where the codec is not known, or its library is not installed.
    CorruptRecordError
        Where the data end too early.
    Exception
        Whatever the codec's library raises for data that are damaged.

    Examples
    --------
    >>> bomb = gzip.compress(bytes(1_000_000))
    >>> len(bomb) < 2000, len(decompress(1, bomb, 1_000_000))
    (True, 1000000)
    >>> decompress(1, bomb, 999_999)
    Traceback (most recent call last):
        ...
    streamkernel.connectors.kafka.consumer.decompression.TooLargeError: more than 999,999 bytes once it is decompressed

    """
    if compression not in _CODECS:
        raise UnsupportedCodecError(f"Unrecognized compression type: {compression}")
    name, codec = _CODECS[compression]
    if not getattr(codecs, f"has_{name}")() or (name == "lz4" and codecs.lz4 is None):
        raise UnsupportedCodecError(f"Libraries for {name} compression codec not found")
    return codec(data, most)


def _too_large(most: int) -> TooLargeError:
    return TooLargeError(f"more than {most:,} bytes once it is decompressed")


def _read(read: Callable[[int], bytes], most: int) -> bytes:
    """Read a stream to its end."""
    chunks, left = [], most
    while chunk := read(min(_CHUNK, left + 1)):
        left -= len(chunk)
        if left < 0:
            raise _too_large(most)
        chunks.append(chunk)
    return b"".join(chunks)


def _gzip(data: bytes, most: int) -> bytes:
    with gzip.GzipFile(fileobj=io.BytesIO(data)) as stream:
        return _read(stream.read, most)


def _zstd(data: bytes, most: int) -> bytes:
    with codecs.zstd.ZstdDecompressor().stream_reader(io.BytesIO(data), read_across_frames=True) as stream:
        return _read(stream.read, most)


def _lz4(data: bytes, most: int) -> bytes:
    # Not at once: then the length in its header would be believed.
    frame = codecs.lz4.LZ4FrameDecompressor()

    def read(size: int) -> bytes:
        nonlocal data
        chunk = b""
        while not chunk and not frame.eof:
            if not data and frame.needs_input:
                raise CorruptRecordError("the LZ4 frame is cut short")
            chunk, data = frame.decompress(data, max_length=size), b""
        return chunk

    return _read(read, most)


def _snappy(data: bytes, most: int) -> bytes:
    blocks, left = [], most
    for block in _snappy_blocks(data):
        # It begins with the length of what comes out, seven bits a byte, the low ones first.
        length = 0
        for index, byte in enumerate(block[:5]):
            length |= (byte & 0x7F) << (7 * index)
            if byte < 0x80:
                break
        if length > left:
            raise _too_large(most)
        blocks.append(codecs.snappy.decompress(block))
        left -= len(blocks[-1])
    return b"".join(blocks)


def _snappy_blocks(data: bytes) -> Iterator[bytes]:
    if not (data.startswith(_FRAMING) and len(data) >= _FRAMING_LENGTH):
        yield data
        return
    place = _FRAMING_LENGTH
    while place < len(data):
        (length,) = _BLOCK_LENGTH.unpack_from(data, place)
        place += _BLOCK_LENGTH.size
        if not 0 < length <= len(data) - place:
            raise CorruptRecordError(f"a block of {length} bytes of snappy, where {len(data) - place} are left")
        yield data[place : place + length]
        place += length


_CODECS: Mapping[int, tuple[str, Callable[[bytes, int], bytes]]] = {
    1: ("gzip", _gzip),
    2: ("snappy", _snappy),
    3: ("lz4", _lz4),
    4: ("zstd", _zstd),
}
