"""Checking that a file is the one in which a position was taken, and finding where to go on in it."""

from __future__ import annotations

from itertools import islice

from streamkernel.connectors.decode import shown
from streamkernel.connectors.files.bytes import File
from streamkernel.connectors.files.identity import FilePlace, identity
from streamkernel.connectors.ports import Position, SourceError

_LINE_BYTES = 200
_BLOCK_BYTES = 2**20


def matches(file: File, position: Position) -> bool:
    """Tell whether this is the file, and still as long, in which `position` was taken."""
    place = FilePlace.parse(position.stream)
    return place is not None and position.offset >= 0 and _difference(file, place, position.offset) is None


def repeats(file: File, head: bytes) -> bool | None:
    """Return whether a file repeats what was read of another that began with `head`; None: not known yet.

    A first line in common does not count: it is a header, or what a program writes first.
    """
    beginning = file.read_at(0, len(head)).rstrip(b"\0")
    whole_lines = zip(head.split(b"\n")[:-1], beginning.split(b"\n")[:-1], strict=False)
    if beginning == head or [one == other for one, other in islice(whole_lines, 2)] == [True, True]:
        return True
    return None if head.startswith(beginning) else False


def holds_end(file: File, end: bytes) -> bool:
    """Tell whether a file holds, anywhere, the whole lines at the end of what was read of another: two or more.

    Line ends do not count: whoever changes them writes the same lines again.
    """
    lines = end.replace(b"\r\n", b"\n").split(b"\n")[1:-1]  # the first may be cut, the last may have no end yet
    if len(lines) < 2:
        return False
    wanted, at, before = b"\n".join(lines), 0, b""
    while block := file.read_at(at, _BLOCK_BYTES):
        at += len(block)
        before += block
        if wanted in before.replace(b"\r\n", b"\n"):
            return True
        before = before[-2 * len(wanted) :]
    return False


def resume_offset(file: File, position: Position) -> int:
    """Return where to go on: at the position, or after a line end that was missing when it was taken.

    Raises SourceError, saying why, where the file does not match the position, or its last line was learned as it stood
    at the end of the file and has grown since.
    """
    place = FilePlace.parse(position.stream)
    if place is None or position.offset < 0:
        raise SourceError(
            f"{file.path}: the position to resume at was not taken from a file ({position.stream:.200}): "
            "use the source it came from, or start over with --fresh"
        )
    difference = _difference(file, place, position.offset)
    if difference is not None:
        raise SourceError(f"{file.path}: {difference}: put the old file back, or start over with --fresh")
    return _behind_line_end(file, position.offset) if place.unended else position.offset


def _difference(file: File, place: FilePlace, offset: int) -> str | None:
    head = file.read_at(0, place.head_length)
    if len(head) == place.head_length and identity(head) != place.head:
        return f"the file was replaced since the checkpoint, its first {len(head):,} bytes differ"
    wanted = min(offset, place.tail_length or 1)
    tail = file.read_before(offset, wanted)
    if len(head) < place.head_length or len(tail) < wanted:
        return (
            f"the file is shorter than the position to resume at, {offset:,} bytes; "
            "it was truncated or replaced since the checkpoint"
        )
    if place.tail is not None and identity(tail) != place.tail:
        return (
            "the file was replaced since the checkpoint, "
            f"its {place.tail_length:,} bytes before byte {offset:,}, where reading continues, differ"
        )
    return None


def _behind_line_end(file: File, offset: int) -> int:
    """Return the offset after the line end at `offset`, where one came since; SourceError where more of the line."""
    following = file.read_at(offset, 2)
    for end in (b"\n", b"\r\n"):
        if following.startswith(end):
            return offset + len(end)
    if following in (b"", b"\r"):
        return offset
    before = file.read_before(offset, _LINE_BYTES).rpartition(b"\n")[2]
    line = before + file.read_at(offset, _LINE_BYTES).partition(b"\n")[0]
    raise SourceError(
        f"{file.path}: the last line was learned without its line end, as {_text(before)}, and is now "
        f"{_text(line)}: add a line end at byte {offset:,}, or start over with --fresh (with follow: true, the "
        "daemon reads a line only with its line end)"
    )


def _text(line: bytes) -> str:
    return shown(line.decode("utf-8", "replace").rstrip("\r"))
