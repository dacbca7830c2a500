"""The instructions of a Dockerfile, as far as the tests need to follow them without an engine."""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

__all__ = ["Instruction", "instructions"]


class Instruction(NamedTuple):
    """An instruction of a Dockerfile: its keyword, and all that follows, on one line."""

    keyword: str
    text: str


def instructions(path: Path) -> list[Instruction]:
    """Read the instructions of a Dockerfile, without its comments.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.NamedTemporaryFile("w") as file:
    ...     _ = file.write("# a comment\\nFROM a AS b\\nRUN c \\\\\\n && d\\n")
    ...     file.flush()
    ...     [tuple(one) for one in instructions(Path(file.name))]
    [('FROM', 'a AS b'), ('RUN', 'c && d')]

    """
    text = re.sub(r"^#.*\n", "", path.read_text(), flags=re.MULTILINE)
    joined = re.sub(r"\s*\\\n\s*", " ", text)
    return [Instruction(*line.split(" ", 1)) for line in joined.splitlines() if line]
