"""The layout of a board: its rows one below the other, each panel with a number and a place on the grid."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from grafana_foundation_sdk.builders import dashboard as builders
from grafana_foundation_sdk.models.dashboard import GridPos, Panel, RowPanel

from configs.mixin.panels.board_row import BoardRow

__all__ = ["laid_out"]

_WIDTH = 24


def laid_out(rows: Sequence[BoardRow]) -> list[Panel | RowPanel]:
    """Place the panels of some rows; those of a folded row are inside of it, and take no place below it."""
    placed: list[Panel | RowPanel] = []
    y, number = 0, 1
    for row in rows:
        title = builders.Row(row.title).collapsed(row.folded).id(number).build()
        title.grid_pos = GridPos(x=0, y=y, w=_WIDTH, h=1)
        panels = list(_panels(row, y + 1, number + 1))
        placed.append(title)
        if row.folded:
            title.panels = panels
        else:
            placed += panels
        y += 1 if row.folded else 1 + row.height * len(row.lines)
        number += 1 + len(panels)
    return placed


def _panels(row: BoardRow, y: int, number: int) -> Iterator[Panel]:
    for line in row.lines:
        for place, builder in enumerate(line):
            left, right = (_WIDTH * at // len(line) for at in (place, place + 1))
            panel = builder.build()
            panel.id_val = number
            panel.grid_pos = GridPos(x=left, y=y, w=right - left, h=row.height)
            number += 1
            yield panel
        y += row.height
