"""The commands and files that the pages of docs/ show, so that a page that changes is tried as it is."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

__all__ = ["command", "commands", "sections"]

_DOCS = Path(__file__).parents[2] / "docs"
_BLOCK = re.compile(r'^```(\w*)(?: title="(.+?)")?\n(.*?)^```$', re.MULTILINE | re.DOTALL)
_INLINE = re.compile(r"`(streamkernel [^`]+)`")


def commands(page: str) -> list[str]:
    """List the commands of ours that a page shows, in order, each as it is typed."""
    text = (_DOCS / page).read_text()
    shown = [line.strip() for _, _, body in _BLOCK.findall(text) for line in body.splitlines()]
    return [line for line in shown if line.startswith("streamkernel ")] + _INLINE.findall(_BLOCK.sub("", text))


def command(page: str, beginning: str, **replaced: str) -> list[str]:
    """Return the first command of a page that begins so, as arguments, with other names where the page has its own.

    A keyword is what stands on the page, without what a keyword cannot have: `orders_yaml="mine.yaml"`.
    """
    found = next((one for one in commands(page) if one.startswith(f"streamkernel {beginning}")), None)
    assert found is not None, f"docs/{page} shows no `streamkernel {beginning}` any more, but {commands(page)}"
    given = {re.sub(r"\W", "_", old): new for old, new in replaced.items()}
    words = shlex.split(found.partition(" #")[0])[1:]
    return [given.get(re.sub(r"\W", "_", word), word) for word in words if word not in ("||", "true")]


def sections(page: str, title: str) -> str:
    """Return the file of a title that a page shows."""
    (body,) = [body for _, named, body in _BLOCK.findall((_DOCS / page).read_text()) if named == title]
    return str(body)
