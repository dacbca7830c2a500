"""The boards as they are shipped: their panels, folded ones too, and what they ask Prometheus for."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

_FOLDER = Path(__file__).parents[2] / "configs" / "mixin" / "dashboards"
DAEMON, SERVICE = _FOLDER / "streamkernel.json", _FOLDER / "streamkernel-serve.json"


def read(path: Path) -> dict[str, Any]:
    """Read a board."""
    board: dict[str, Any] = json.loads(path.read_text())
    return board


def panels(board: dict[str, Any]) -> list[dict[str, Any]]:
    """Return all panels but the rows, those in folded rows too."""
    rows = [panel for panel in board["panels"] if panel["type"] == "row"]
    open_ones = [panel for panel in board["panels"] if panel["type"] != "row"]
    return open_ones + [panel for row in rows for panel in row["panels"]]


def asked_by_panel(path: Path) -> dict[str, list[str]]:
    """Return the queries of each panel, by its title."""
    return {panel["title"]: [target["expr"] for target in panel["targets"]] for panel in panels(read(path))}


def expressions(path: Path) -> list[str]:
    """Return all that a board asks for: by its panels, its variables and its annotations."""
    board = read(path)
    variables = [one["query"]["query"] for one in board["templating"]["list"] if one["type"] == "query"]
    annotations = [one["expr"] for one in board["annotations"]["list"]]
    return [one for asked in asked_by_panel(path).values() for one in asked] + variables + annotations


def names_in(text: str) -> set[str]:
    """Return the names of metrics in an expression: ours, those of the process, and recorded ones."""
    return set(re.findall(r"(?<![\w:])(?:\w+:)?(?:streamkernel|process)_[\w:]+", text))
