"""The status page of a member."""

from __future__ import annotations

import html
from collections.abc import Mapping, Sequence

from streamkernel.daemon.group.child import Child

__all__ = ["member_page"]


def member_page(title: str, standing: str, held: Sequence[int], children: Mapping[int, Child]) -> str:
    """Make the page a person sees at ``/``.

    Parameters
    ----------
    title
        The configuration file.
    standing
        The group the member is in, or what keeps it out.
    held
        The partitions that are the member's.
    children
        Its children, by partition.

    """
    rows = [("partition", "process", "state", "saved up to offset")]
    for partition in sorted({*held, *children}):
        child = children.get(partition)
        if child is None:
            rows.append((str(partition), "", "waiting to be started", ""))
        else:
            saved = "" if child.saved is None else f"{child.saved:,}"
            rows.append((str(partition), str(child.pid), child.state, saved))
    cells = "\n".join("<tr>" + "".join(f"<td>{html.escape(text)}</td>" for text in row) + "</tr>" for row in rows)
    return f"""<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><meta http-equiv="refresh" content="5"><title>streamkernel</title>
<style>body{{font:16px/1.5 system-ui,sans-serif;margin:2em}}td{{text-align:right;padding-right:2em;
font-variant-numeric:tabular-nums}}</style></head>
<body><h1>streamkernel {html.escape(title)}</h1>
<p>{html.escape(standing)}; partitions held: {len(held)}</p>
<table>
{cells}
</table>
<p><a href="/metrics">metrics</a> <a href="/healthz">healthz</a> <a href="/readyz">readyz</a></p></body></html>
"""
