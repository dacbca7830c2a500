"""A row of a board: a title over panels, folded where it is for some runs only."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from configs.mixin.panels.drawing import PanelBuilder

__all__ = ["BoardRow"]


@dataclass(frozen=True)
class BoardRow:
    """A title over panels.

    Attributes
    ----------
    title
        What its panels have in common.
    lines
        The panels, line by line; those of a line share its width.
    height
        The height of each, in cells of the grid.
    folded
        Whether a reader has to open it, which spares others its queries.

    """

    title: str
    lines: Sequence[Sequence[PanelBuilder]]
    height: int = 8
    folded: bool = False
