import gzip
import os
from hashlib import sha256
from pathlib import Path

import pytest
import zstandard
from draining import drain, pack, written

from streamkernel.connectors import CsvSource, JsonLinesSource, Position, SourceError
from streamkernel.connectors.files import bytes as file_bytes
from streamkernel.connectors.files.bytes import CompressedFile

SUFFIXES = ["", ".gz", ".zst"]
LINES = b"".join(b'{"a": %d}\n' % number for number in range(3000))


@pytest.mark.parametrize("suffix", SUFFIXES)
@pytest.mark.parametrize("kept", [0, 100, 5000])
def test_a_shorter_file_is_refused(tmp_path: Path, suffix: str, kept: int) -> None:
    path = written(tmp_path / f"data.jsonl{suffix}", LINES)
    position = drain(JsonLinesSource(path))[-1].next
    written(path, LINES[:kept])
    with pytest.raises(SourceError, match=r"data.jsonl.*shorter than the position.*--fresh"):
        JsonLinesSource(path).open({0: position})


@pytest.mark.parametrize(
    "stream",
    [
        "-",
        "memory",
        'synth.SEA{"seed":1}',
        "",
        ":",
        "99999999:" + "0" * 64,
        "x:" + "0" * 64,
        "²:" + "0" * 64,
    ],
)
def test_a_position_of_another_source_is_refused(tmp_path: Path, stream: str) -> None:
    path = written(tmp_path / "data.jsonl", LINES)
    with pytest.raises(SourceError, match="was not taken from a file"):
        JsonLinesSource(path).open({0: Position(stream, 0, 10)})


def test_a_position_beyond_all_files_is_refused(tmp_path: Path) -> None:
    path = written(tmp_path / "stream.csv", b"a,y\n1,no\n")
    with pytest.raises(SourceError, match="is shorter than the position"):
        CsvSource(path, target="y").open({0: Position(f"1:{sha256(b'a').hexdigest()}", 0, 2**65)})


@pytest.mark.parametrize("follow", [False, True])
def test_what_cannot_be_opened_is_named(tmp_path: Path, follow: bool) -> None:
    with pytest.raises(SourceError, match=r"absent.csv: there is no such file$"):
        CsvSource(tmp_path / "absent.csv", follow=follow).open()
    with pytest.raises(SourceError, match=r": is a directory$"):
        CsvSource(tmp_path, follow=follow).open()
    os.mkfifo(tmp_path / "pipe")
    descriptor = os.open(tmp_path / "pipe", os.O_RDWR)
    with pytest.raises(SourceError, match="not a regular file"):
        CsvSource(tmp_path / "pipe", follow=follow).open()
    os.close(descriptor)


@pytest.mark.parametrize("suffix", [".gz", ".zst"])
def test_a_truncated_file_can_be_resumed_once_it_is_whole(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"data.jsonl{suffix}"
    packed = pack(LINES, suffix)
    # Cut in the second member: the first, and with it its records, is whole.
    path.write_bytes(packed[:-20])
    source = JsonLinesSource(path)
    source.open()
    records = list(source.poll(10_000, timeout=0))
    with pytest.raises(SourceError, match="data end early"):
        source.poll(10_000, timeout=0)
    path.write_bytes(packed)
    source.open({0: records[-1].next})
    records += source.poll(10_000, timeout=0)
    assert b"\n".join(record.raw for record in records) + b"\n" == LINES
    source.close()


@pytest.mark.parametrize("suffix", [".gz", ".zst"])
def test_a_damaged_file_is_an_error(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"data.jsonl{suffix}"
    # As the command line tools write them: with a checksum.
    compressor = zstandard.ZstdCompressor(write_checksum=True)
    packed = bytearray(gzip.compress(LINES) if suffix == ".gz" else compressor.compress(LINES))
    path.write_bytes(b"this is plain text, whatever the name says\n" * 10)
    with pytest.raises(SourceError, match=r"damaged .* at byte 0 "):
        JsonLinesSource(path).open()
    packed[len(packed) // 2] ^= 0xFF
    path.write_bytes(packed)
    with pytest.raises(SourceError, match="the compressed data are damaged"):
        drain(JsonLinesSource(path))


def test_a_zstd_bomb_does_not_fill_the_memory(tmp_path: Path) -> None:
    # One frame of 2,000 blocks of 4 bytes, each of which stands for 128 KB.
    block = ((0x20000 << 3) | (1 << 1)).to_bytes(3, "little") + b"a"
    bomb = b"\x28\xb5\x2f\xfd\x00\x58" + 2000 * block + (1).to_bytes(3, "little")
    path = tmp_path / "bomb.jsonl.zst"
    path.write_bytes(bomb)
    file = CompressedFile(path)
    largest = offset = 0
    while block := file.read(offset):
        largest, offset = max(largest, len(block)), offset + len(block)
    assert offset == 2000 * 0x20000
    assert largest <= 128 * file_bytes.ZSTD_SLICE_BYTES * 1024 // 4
    file.close()


def test_standard_input_is_not_resumed_or_followed() -> None:
    with pytest.raises(SourceError, match="standard input cannot be resumed"):
        CsvSource("-").open({0: Position("-", 0, 12)})
    with pytest.raises(SourceError, match="standard input cannot be followed"):
        CsvSource("-", follow=True).open()


@pytest.mark.parametrize("source", [CsvSource, JsonLinesSource])
def test_a_limit_that_cannot_be_is_refused(source: type[CsvSource | JsonLinesSource]) -> None:
    with pytest.raises(ValueError, match="max_record_bytes must be at least 1"):
        source("data", max_record_bytes=0)
