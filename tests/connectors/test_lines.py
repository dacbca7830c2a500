import tracemalloc

import pytest

from streamkernel.connectors.files.lines import Lines
from streamkernel.connectors.files.stream import ByteStream


class Pieces(ByteStream):
    """A stream that hands out given pieces."""

    def __init__(self, pieces: list[bytes]) -> None:
        self.pieces = pieces

    def read(self) -> bytes:
        block = self.pieces.pop(0) if self.pieces else b""
        self.offset += len(block)
        self.ended = not block
        return block

    def name_at(self, offset: int) -> str:  # noqa: ARG002 - the port's
        return "pieces"

    def close(self) -> None:
        pass


def split(data: bytes, limit: int = 100, block: int = 1000, at_once: int = 3) -> list[tuple[bytes, int, int, int]]:
    lines = Lines(Pieces([data[at : at + block] for at in range(0, len(data), block)]), limit)
    found = []
    while not lines.done:
        chunk = lines.take(at_once)
        assert len(chunk.lines) <= at_once
        for line, start, end in zip(chunk.lines, chunk.positions, chunk.positions[1:], strict=False):
            found.append((line, start.offset, end.offset, chunk.too_long))
    return found


@pytest.mark.parametrize("block", [1, 2, 3, 5, 7, 1000])
@pytest.mark.parametrize("at_once", [1, 2, 10])
def test_a_line_over_the_limit_is_cut_and_alone(block: int, at_once: int) -> None:
    data = b"12345\n123456\n12345\r\n123456\r\n\n" + b"x" * 50 + b"\nok\n" + b"y" * 9
    assert split(data, limit=5, block=block, at_once=at_once) == [
        (b"12345", 0, 6, 0),
        (b"12345", 6, 13, 6),
        (b"12345", 13, 20, 0),
        (b"12345", 20, 28, 7),
        (b"", 28, 29, 0),
        (b"xxxxx", 29, 80, 50),
        (b"ok", 80, 83, 0),
        (b"yyyyy", 83, 92, 9),
    ]


def test_a_line_without_end_takes_bounded_memory() -> None:
    class Endless(Pieces):
        def read(self) -> bytes:
            if self.offset == 200_000_000:
                self.pieces = [b"\nnext\n"]
            elif self.offset < 200_000_000:
                self.pieces = [b"x" * 100_000]
            return super().read()

    lines = Lines(Endless([]), 1000)
    tracemalloc.start()
    chunk = lines.take(10)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert list(chunk.lines) == [b"x" * 1000]
    assert chunk.too_long == 200_000_000
    assert peak < 2_000_000
    assert list(lines.take(10).lines) == [b"next"]
