"""The frame of the status pages."""

from __future__ import annotations

import html
from collections.abc import Iterable

__all__ = ["html_page"]


def html_page(title: str, rows: Iterable[str], intro: str = "") -> str:
    """Return a page that loads itself anew every five seconds: a table of rows, and an intro above it, both as HTML."""
    table = "\n".join(f"<tr>{row}</tr>" for row in rows)
    return f"""<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><meta http-equiv="refresh" content="5"><title>streamkernel</title>
<style>body{{font:16px/1.5 system-ui,sans-serif;margin:2em}}th,td{{padding-right:2em}}
th{{text-align:left;font-weight:normal}}td{{text-align:right;font-variant-numeric:tabular-nums}}</style></head>
<body><h1>streamkernel {html.escape(title)}</h1>
{intro}<table>
{table}
</table>
<p><a href="/metrics">metrics</a> <a href="/healthz">healthz</a> <a href="/readyz">readyz</a></p></body></html>
"""
