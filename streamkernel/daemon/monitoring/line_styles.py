"""Colors and dashes of the curves of several runs, the same in every plot and report."""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["DARK_COLORS", "LIGHT_COLORS", "LineStyle", "line_style"]

#: Okabe and Ito's colors are told apart with any color vision.
LIGHT_COLORS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
#: The same ones on a dark ground, where black is white and the darkest blue is exchanged for the light one.
DARK_COLORS = ("#56B4E9", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#F0E442", "#FFFFFF")
# In multiples of the width of the line: strokes and gaps in turn, none for a line without gaps. They serve in print.
_DASHES: tuple[tuple[int, ...], ...] = ((), (4, 2), (6, 2, 1, 2), (1, 2), (5, 1, 1, 1, 1, 1), (1, 3), (8, 3))


class LineStyle(NamedTuple):
    """The color of a curve, as its place among the colors, and its dashes."""

    color: int
    dashes: tuple[int, ...]


def line_style(index: int) -> LineStyle:
    """Return the style of the curve of a run by its place; the first 49 differ.

    Examples
    --------
    >>> line_style(0), line_style(1), line_style(7)
    (LineStyle(color=0, dashes=()), LineStyle(color=1, dashes=(4, 2)), LineStyle(color=0, dashes=(4, 2)))

    """
    n_colors = len(LIGHT_COLORS)
    return LineStyle(index % n_colors, _DASHES[(index + index // n_colors) % len(_DASHES)])
