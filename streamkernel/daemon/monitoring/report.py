"""The document of the report: figures, charts and what was evaluated, of all runs side by side."""

from __future__ import annotations

import html
import itertools
import os
import platform
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from importlib.metadata import version

from streamkernel.daemon.monitoring.charts import Panel, line_style, panels_of, svg
from streamkernel.daemon.monitoring.evaluation import Evaluation
from streamkernel.daemon.monitoring.status_page import page_file
from streamkernel.daemon.monitoring.tables import Figure, figure_rows

__all__ = ["report"]

# Style sheets and styles of elements are in the document itself; nothing else is loaded, and nothing runs.
_POLICY = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"
_MOST_MARKS = 20  # whose numbers of records are listed
_MOST_NAMED = 3  # runs whose names are in the title
_LIBRARIES = {"streamkernel": "streamkernel", "River": "river", "NumPy": "numpy"}


def report(evaluations: Mapping[str, Evaluation], when: datetime) -> str:
    """Return the report of evaluations, by the names of the runs, as HTML.

    Parameters
    ----------
    evaluations
        In the order of the columns; none where it was stopped before the first.
    when
        The time that the report shows.

    """
    named = ", ".join(evaluations) if 0 < len(evaluations) <= _MOST_NAMED else f"{len(evaluations):,} runs"
    title = f"Evaluation of {named}"
    if any(one.stopped for one in evaluations.values()):
        title += ", stopped before the end"
    charts = "\n".join(map(_chart, panels_of(evaluations, all_metrics=True)))
    style = page_file("report.css")
    runs = "\n".join(_run(place, name, one) for place, (name, one) in enumerate(evaluations.items()))
    return f"""<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta http-equiv="Content-Security-Policy" content="{html.escape(_POLICY)}">
<title>{html.escape(title)}</title>
<style>{style}</style></head>
<body><header><p class="quiet">streamkernel evaluate</p>
<h1>{html.escape(title)}</h1>
<p class="quiet"><time datetime="{when:%Y-%m-%dT%H:%M:%SZ}">{when:%Y-%m-%d %H:%M} UTC</time>, {_versions()}</p></header>
<main>
<section aria-labelledby="figures"><h2 id="figures">Figures</h2>
{_table(evaluations)}</section>
<section aria-labelledby="curves"><h2 id="curves">Curves</h2>
<div class="charts">
{charts}
</div></section>
<section aria-labelledby="runs"><h2 id="runs">What was evaluated</h2>
<div class="runs">
{runs}
</div></section>
</main></body></html>
"""


def _chart(panel: Panel) -> str:
    summary = html.escape(panel.summary)
    return f"""<figure class="card chart"><div role="img" aria-label="{summary}">{svg(panel)}</div>
<figcaption class="quiet">{summary}</figcaption></figure>"""


def _swatch(place: int) -> str:
    return f'<i class="swatch" style="background:{line_style(place)["color"]}"></i>'


def _versions() -> str:
    """Return what the evaluation ran on; nothing of it names the machine."""
    libraries = [f"{name} {version(package)}" for name, package in _LIBRARIES.items()]
    system = f"{platform.system()} {platform.machine()} with {os.cpu_count()} processors"
    return html.escape(", ".join([*libraries, f"Python {platform.python_version()}", system]))


def _table(evaluations: Mapping[str, Evaluation]) -> str:
    head = "".join(
        f'<th scope="col">{_swatch(place)}{html.escape(name)}</th>' for place, name in enumerate(evaluations)
    )
    rows = "\n".join(
        f'<tr><th scope="row">{html.escape(label)}</th>{"".join(map(_cell, figures))}</tr>'
        for label, figures in _rows(evaluations)
    )
    figures = [figure for _, row in _rows(evaluations) for figure in row if figure is not None]
    note = '<p class="quiet">The best of each metric is set off.</p>' if any(one.best for one in figures) else ""
    return f"""<div class="card wide" tabindex="0" role="region" aria-label="Table of figures">{note}
<table><caption class="unseen">Figures of each run at its end</caption>
<thead><tr><td></td>{head}</tr></thead><tbody>
{rows}
</tbody></table></div>"""


def _rows(evaluations: Mapping[str, Evaluation]) -> Iterable[tuple[str, Sequence[Figure | None]]]:
    rows = figure_rows({name: one.view for name, one in evaluations.items()})
    # A model that adapts has learned its metric long before it can detect a drift.
    adapting = [bool(one.drifts or one.relearnings) for one in evaluations.values()]
    changes = {
        "drifts detected": [one.drifts for one in evaluations.values()],
        "metrics learned": [one.relearnings for one in evaluations.values()],
    }
    shown = {
        label: [Figure(f"{len(one):,}") if adapts else None for one, adapts in zip(marks, adapting, strict=True)]
        for label, marks in changes.items()
        if any(marks)
    }
    return itertools.chain(rows.items(), shown.items())


def _cell(figure: Figure | None) -> str:
    if figure is None:
        return "<td></td>"
    text = html.escape(figure.text)
    return f'<td class="best">{text}<span class="unseen"> (best)</span></td>' if figure.best else f"<td>{text}</td>"


def _run(place: int, name: str, evaluation: Evaluation) -> str:
    """Return what was evaluated in a run: its configuration and source, its changes, its model as River draws it."""
    about = {**evaluation.about, **dict(_changes(evaluation))}
    rows = "".join(f"<dt>{html.escape(key)}</dt><dd>{html.escape(text)}</dd>" for key, text in about.items())
    return f"""<section class="card run"><h3>{_swatch(place)}<span>{html.escape(name)}</span></h3>
<dl>{rows}</dl>
{evaluation.pipeline}</section>"""


def _changes(evaluation: Evaluation) -> Iterator[tuple[str, str]]:
    if evaluation.stopped is not None:
        yield "stopped", f"by {evaluation.stopped} before the end of the source"
    for what, marks in (("drift detected", evaluation.drifts), ("metric learned", evaluation.relearnings)):
        if marks:
            more = f" and {len(marks) - _MOST_MARKS:,} more" if len(marks) > _MOST_MARKS else ""
            yield what, f"after {', '.join(f'{mark:,}' for mark in marks[:_MOST_MARKS])} records{more}"
