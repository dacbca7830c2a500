"""What is kept of a file to know it again: its first bytes, those read last, and the name of a place."""

from __future__ import annotations

import pytest

from streamkernel.connectors.files.places import Head, identity


@pytest.mark.parametrize("block", [1, 7, 5000])
@pytest.mark.parametrize("first_line", [3, 4000, 5000])
def test_the_head_reaches_behind_the_first_line(block: int, first_line: int) -> None:
    data = b"x" * (first_line - 1) + b"\n" + b"1\n" * 5000
    head = Head()
    for at in range(0, len(data), block):
        head.add(data[at : at + block])
    length = max(4096, first_line + 2048)
    assert head.identity_at(len(data)) == identity(data[:length])
    assert head.identity_at(length + 1) == identity(data[:length])
    assert head.identity_at(first_line) == identity(data[:first_line])


def test_a_first_line_without_end_is_bounded() -> None:
    head = Head(b"x" * 2**21)
    head.add(b"x")
    assert len(head.data) == 2**20 + 2048
