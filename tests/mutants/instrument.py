"""Write a copy of the checkout in which every mutant is there, and none is active."""

from __future__ import annotations

import shutil
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path

from tests.mutants.listed import ROOT, Mutant

_LEFT_BEHIND = shutil.ignore_patterns(".git", ".venv", "out", "__pycache__", ".*_cache", ".hypothesis", "site", "build")


def instrument(mutants: Iterable[Mutant], into: Path) -> None:
    """Copy the checkout, each place as ``(mutant if __mutant__(id) else original)``."""
    keep = into / "streamkernel/compute/__pycache__"  # compiled code: it holds for files of the same time
    aside = into.with_suffix(".compiled")
    if keep.exists():
        keep.rename(aside)
    shutil.rmtree(into, ignore_errors=True)
    shutil.copytree(ROOT, into, ignore=_LEFT_BEHIND, symlinks=True)
    if aside.exists():
        aside.rename(keep)
    by_file: dict[str, list[Mutant]] = defaultdict(list)
    for each in mutants:
        if each.place is not None:
            by_file[each.key.file].append(each)
    for file, here in by_file.items():
        path = into / file
        path.write_bytes(rewritten(path.read_bytes(), here))
    for package in ("streamkernel", "connectors"):
        shutil.copy(Path(__file__).with_name("switch.py"), into / package / "_mutants_switch.py")
        begin = into / package / "__init__.py"
        name = "streamkernel.connectors" if package == "connectors" else package
        docstring, _, rest = begin.read_text().partition("\n")
        begin.write_text(f"{docstring}\nimport {name}._mutants_switch  # noqa\n{rest}")


def rewritten(source: bytes, mutants: list[Mutant]) -> bytes:
    starts = [0]
    for line in source.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    places = []
    for each in mutants:
        assert each.place is not None
        node = each.place.node
        assert node.end_lineno is not None
        assert node.end_col_offset is not None
        begin, end = starts[node.lineno - 1] + node.col_offset, starts[node.end_lineno - 1] + node.end_col_offset
        places.append((begin, end, each.id, each.place.replacement))
    for begin, end, number, replacement in sorted(places, reverse=True):
        new = f"(({replacement}) if __mutant__({number}) else (".encode()
        source = source[:begin] + new + source[begin:end] + b"))" + source[end:]
    return source
