"""Counts of the code: `python -m tests.counts [ROOT]` prints its lines, files, classes and statements by folder.

A branch on a feature is an attribute of the configuration or of the state of a run, read outside the feature's own
component, such as `plan.config.labels`. A look-up of its source by name counts as well.
"""

from __future__ import annotations

import ast
import re
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

__all__ = ["FEATURES", "Counts", "branches", "count"]

FEATURES = (
    *("labels", "warm_start", "models", "publish", "published", "mode", "serve_from", "reload", "initial_model"),
    *("serve", "group", "order", "replayed", "challengers", "several", "trained", "join", "warm"),
)
"""The optional features, by the names under which code reaches them."""

_MODELS = ("run_state/models.py", "run_state/run_models.py", "promote.py")
_TRAINED = ("run_state/predict_mode.py", "run_state/trained.py")
_OWN = {
    "labels": ("labels/", "run_state/late_labels.py"),
    "join": ("labels/", "run_state/late_labels.py"),
    "warm_start": ("warm_start.py", "run_state/warm_start.py"),
    "warm": ("warm_start.py", "run_state/warm_start.py"),
    "models": _MODELS,
    # A trained model is one of several by its name.
    "publish": (*_MODELS, "run_state/trained.py"),
    "published": (*_MODELS, "run_state/trained.py"),
    # To run challengers is step 6 of the ten of docs/architecture.md; by default there are none.
    "challengers": ("stream/", *_MODELS),
    "mode": ("run_state/run.py", *_TRAINED),
    "serve_from": _TRAINED,
    "trained": _TRAINED,
    "reload": _TRAINED,
    "initial_model": _TRAINED,
    "serve": ("serve/",),
    "group": ("group/", "partition.py"),
    "replayed": ("replay/", "run_state/replayed.py"),
}
"""Where the component of a feature is, in addition to its declaration in ``components/``."""

_FOLDERS = ("streamkernel/daemon", "streamkernel/spark", "connectors", "streamkernel", "tests", "benchmarks")
_HOLDERS = re.compile(r"\b(?P<holder>config|plan|start|processor|self)(?=\.(?P<feature>\w+)\b(?!\())")
_LOOKUPS = re.compile(r"sources(?:\.get\(|\[)\"(?P<feature>labels|warm_start)\.source\"")
# An attribute of any other object is its own: the mode of a file, the labels of a metric. A configuration declares its
# sections, and a plan what it holds.
_HOLDING = ("run_state/start.py", "stream/processor.py")
# Each shows the mode, and does not depend on it.
_SHOWN = re.compile(r"\"mode\": plan\.config\.mode,")


@dataclass
class Counts:
    """What a folder holds."""

    lines: int = 0
    files: int = 0
    long_files: int = 0
    classes: int = 0
    functions: int = 0
    function_lines: int = 0
    statements: int = 0
    docstring_lines: int = 0
    names: Counter[str] = field(default_factory=Counter)

    def add(self, text: str) -> None:
        """Count one file."""
        self.files += 1
        n_lines = text.count("\n")
        self.lines += n_lines
        self.long_files += n_lines > 400
        for node in ast.walk(ast.parse(text)):
            self.statements += isinstance(node, ast.stmt)
            self.classes += isinstance(node, ast.ClassDef)
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                self.functions += 1
                self.function_lines += (node.end_lineno or node.lineno) - node.lineno + 1
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Module):
                first = node.body[0] if node.body else None
                if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant) and first.value.value:
                    self.docstring_lines += (first.end_lineno or first.lineno) - first.lineno + 1


def sources(folder: Path) -> Iterator[Path]:
    """Yield the Python files of a folder, those of a link only once."""
    for path in sorted(folder.rglob("*.py")):
        if not any(part.is_symlink() for part in path.parents if part.is_relative_to(folder)):
            yield path


def count(root: Path) -> dict[str, Counts]:
    """Return the counts by folder; a file counts in the first folder that holds it."""
    found = {folder: Counts() for folder in _FOLDERS}
    for folder in sorted(_FOLDERS, key=len, reverse=True):
        inner = [root / other for other in _FOLDERS if other != folder and other.startswith(folder + "/")]
        for path in sources(root / folder):
            if not any(path.is_relative_to(one) for one in inner):
                found[folder].add(path.read_text())
    return found


def branches(root: Path) -> Counter[str]:
    """Return how often each file of the daemon reaches for a feature that is not its own."""
    found: Counter[str] = Counter()
    for path in sources(root / "streamkernel/daemon"):
        name = str(path.relative_to(root / "streamkernel/daemon"))
        if name.startswith("components/"):
            continue
        text = _SHOWN.sub("", path.read_text())
        for match in (*_HOLDERS.finditer(text), *_LOOKUPS.finditer(text)):
            feature, holder = match["feature"], match.groupdict().get("holder")
            if holder == "self" and name not in _HOLDING:
                continue
            # A plan and a run have their models without the feature of several, too: the only one has an empty name.
            always = feature == "models" and holder in ("plan", "start", "self")
            found[name] += feature in FEATURES and not always and not name.startswith(_OWN.get(feature, ()))
    return +found


def main(root: str = ".") -> None:
    """Print a table of the counts."""
    print(f"{'':24}{'lines':>8}{'files':>7}{'> 400':>6}{'classes':>8}{'stmts':>8}{'doc %':>6}{'a function':>11}")
    for folder, one in count(Path(root)).items():
        share, length = one.docstring_lines / max(one.lines, 1), one.function_lines / max(one.functions, 1)
        print(
            f"{folder:24}{one.lines:8,}{one.files:7}{one.long_files:6}{one.classes:8}{one.statements:8,}"
            f"{share:6.0%}{length:11.1f}"
        )
    reached = branches(Path(root))
    print(f"branches on a feature outside its component: {sum(reached.values())} in {len(reached)} files")


if __name__ == "__main__":
    main(*sys.argv[1:])
