"""What each file of our code imports and which classes it has, read once for all tests."""

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

Import = ast.Import | ast.ImportFrom


class Source(NamedTuple):
    """The imports of a file at any depth, those of them that run when it is imported, and its classes' names."""

    imports: list[Import]
    at_once: list[Import]
    classes: list[str]


def _statements(node: ast.AST) -> Iterator[ast.AST]:
    for name in ("body", "orelse", "finalbody", "handlers", "cases"):
        for inner in getattr(node, name, ()):
            yield inner
            yield from _statements(inner)


def read(text: str) -> Source:
    """Read a file's text; of its tree only these few nodes are kept, for thousands slow the collector of garbage."""
    tree = ast.parse(text)
    found = list(_statements(tree))
    return Source(
        [node for node in found if isinstance(node, Import)],
        [node for node in tree.body if isinstance(node, Import)],
        [node.name for node in found if isinstance(node, ast.ClassDef)],
    )


@cache
def sources(folder: Path) -> dict[Path, Source]:
    """Read all files of a folder, in order."""
    return {path: _source(path) for path in sorted(folder.rglob("*.py"))}


@cache
def _source(path: Path) -> Source:
    return read(path.read_text())
