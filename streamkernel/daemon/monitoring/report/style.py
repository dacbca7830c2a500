"""The style of the report: cards on a calm ground, light or dark as the reader's system is."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.resources import files

from streamkernel.daemon.monitoring.line_styles import DARK_COLORS, LIGHT_COLORS

__all__ = ["report_style"]


def report_style() -> str:
    """Return the style sheet, with the colors of the runs."""
    own = (files(__package__) / "report.css").read_text("utf-8")
    light = f":root{{{_variables(LIGHT_COLORS)}}}"
    dark = f"@media (prefers-color-scheme: dark) {{:root{{{_variables(DARK_COLORS)}}}}}"
    places = "".join(f".run{place}{{color:var(--run{place})}}" for place in range(len(LIGHT_COLORS)))
    return "\n".join([own, light, dark, places])


def _variables(colors: Sequence[str]) -> str:
    return ";".join(f"--run{place}:{color}" for place, color in enumerate(colors))
