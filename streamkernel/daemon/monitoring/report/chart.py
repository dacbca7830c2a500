"""A chart as inline SVG: it fills whatever width there is, while its lines and texts keep their size."""

from __future__ import annotations

import html
import itertools
import math
from collections.abc import Iterator

from streamkernel.daemon.monitoring.figures import shown_number
from streamkernel.daemon.monitoring.line_styles import LineStyle, line_style
from streamkernel.daemon.monitoring.panels import Curve, Panel
from streamkernel.daemon.monitoring.report.scale import Scale, scale_of

__all__ = ["chart", "swatch"]

_WIDTH, _HEIGHT = 1000, 300  # of the SVG's own units, which are stretched to the place there is
_ROOM = 0.06  # above and below the curves, as a share of their range
_LINE = 2  # pixels


def chart(panel: Panel, records: Scale) -> str:
    """Return a panel as a figure of HTML: title, curves over an axis of records, legend with the last values."""
    values = [value for curve in panel.curves for value in curve.values]
    y = _with_room(scale_of(values, zero=panel.counts), panel.counts)
    marks = "".join(_marks(curve, records) for curve in panel.curves)
    curves = "".join(_curve(curve, records, y) for curve in panel.curves)
    grid = "".join(f'<path d="M0 {_down(y, tick)}h{_WIDTH}"/>' for tick in y.ticks)
    up = "".join(f'<i class="y" style="bottom:{_percent(y.share(tick))}">{y.text(tick)}</i>' for tick in y.ticks)
    along = "".join(
        f'<i class="x" style="left:{_percent(records.share(tick))}">{records.text(tick)}</i>' for tick in records.ticks
    )
    title = html.escape(panel.title.capitalize())
    return f"""<figure class="card chart"><figcaption>{title} <span>by records</span></figcaption>
<div class="plot" role="img" aria-label="{html.escape(_told(panel))}">
<svg viewBox="0 0 {_WIDTH} {_HEIGHT}" preserveAspectRatio="none" aria-hidden="true"><g class="grid">{grid}</g>
{marks}{curves}</svg>
{up}{along}</div>
<ul class="legend">{"".join(_legend(panel))}</ul></figure>"""


def swatch(run: int) -> str:
    """Return a piece of the line of a run, for a legend."""
    return (
        f'<svg class="swatch run{line_style(run).color}" viewBox="0 0 28 8" aria-hidden="true">'
        f'<path d="M0 4H28" stroke-width="{_LINE}"{_dashes(line_style(run))}/></svg>'
    )


def _told(panel: Panel) -> str:
    """Tell a chart in words."""
    ends = (f"{curve.name} {_number(curve.last, panel)}" for curve in panel.curves)
    return f"{panel.title.capitalize()} by records, at the end: {', '.join(ends)}"


def _legend(panel: Panel) -> Iterator[str]:
    for curve in panel.curves:
        value = _number(curve.last, panel)
        yield f"<li>{swatch(curve.run)}<span>{html.escape(curve.name)}</span><b>{value}</b></li>"
    if any(curve.drifts for curve in panel.curves):
        yield f"<li>{_mark_swatch(_mark('drift', 4, 16, 1))}<span>drift detected</span></li>"
    if any(curve.relearnings for curve in panel.curves):
        yield f"<li>{_mark_swatch(_mark('relearning', 4, 16, 0.4))}<span>metric learned</span></li>"


def _mark_swatch(mark: str) -> str:
    return f'<svg class="swatch mark" viewBox="0 0 8 16" aria-hidden="true">{mark}</svg>'


def _number(value: float, panel: Panel) -> str:
    if not math.isfinite(value):
        return "none"
    return f"{value:,.0f}" if panel.counts else shown_number(value)


def _curve(curve: Curve, records: Scale, y: Scale) -> str:
    """Return the path of a curve, with gaps where it has no values; what stands alone between two gaps is a dot."""
    parts, dots = [], []
    for is_there, points in itertools.groupby(
        zip(curve.records, curve.values, strict=True), key=lambda point: math.isfinite(point[1])
    ):
        if not is_there:
            continue
        places = [f"{_along(records, record)} {_down(y, value)}" for record, value in points]
        if len(places) == 1:
            dots.append(f"M{places[0]}h0")
        else:
            parts.append(f"M{'L'.join(places)}")
    style = line_style(curve.run)
    found = f'<path class="dot" d="{"".join(dots)}"/>' if dots else ""
    found += f'<path stroke-width="{_LINE}"{_dashes(style)} d="{"".join(parts)}"/>' if parts else ""
    return f'<g class="run{style.color}"><title>{html.escape(curve.name)}</title>{found}</g>'


def _marks(curve: Curve, records: Scale) -> str:
    """Return the marks of a run: a drift over the whole height, a metric that was learned at the foot."""
    drawn = [_mark("drift", _along(records, record), _HEIGHT, 1) for record in curve.drifts]
    drawn += [_mark("relearning", _along(records, record), _HEIGHT, 0.06) for record in curve.relearnings]
    return f'<g class="run{line_style(curve.run).color}">{"".join(drawn)}</g>' if drawn else ""


def _mark(kind: str, x: float, height: int, share: float) -> str:
    """Return a line from the foot of a chart up to a share of its height."""
    return f'<path class="{kind}" d="M{x} {height}V{height * (1 - share):g}"/>'


def _dashes(style: LineStyle) -> str:
    return f' stroke-dasharray="{" ".join(str(_LINE * one) for one in style.dashes)}"' if style.dashes else ""


def _with_room(scale: Scale, zero: bool) -> Scale:
    """Return an axis with some room around the curves, though none below a count of 0."""
    room = _ROOM * (scale.high / 2 - scale.low / 2) * 2
    low, high = scale.low if zero else scale.low - room, scale.high + room
    return Scale(low, high, scale.ticks) if math.isfinite(low) and math.isfinite(high) else scale


def _along(records: Scale, record: float) -> float:
    return round(_WIDTH * records.share(record), 1)


def _down(y: Scale, value: float) -> float:
    return round(_HEIGHT * (1 - y.share(value)), 1)


def _percent(share: float) -> str:
    return f"{100 * share:.2f}%"
