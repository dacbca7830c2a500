"""The status page of a member."""

from __future__ import annotations

import html
from collections.abc import Mapping, Sequence

from streamkernel.daemon.group.child import Child
from streamkernel.daemon.monitoring.page import html_page

__all__ = ["member_page"]


def member_page(title: str, membership: str, held: Sequence[int], children: Mapping[int, Child]) -> str:
    """Return the status page of a member, with a row for each partition it holds, and for each child that still ends.

    It begins with the group the member is in, or what keeps it out.
    """
    rows = [("partition", "process", "state", "saved up to offset")]
    for partition in sorted({*held, *children}):
        child = children.get(partition)
        if child is None:
            rows.append((str(partition), "", "waiting to be started", ""))
        else:
            saved = "" if child.saved is None else f"{child.saved:,}"
            rows.append((str(partition), str(child.pid), child.state, saved))
    cells = ["".join(f"<td>{html.escape(text)}</td>" for text in row) for row in rows]
    return html_page(title, cells, f"<p>{html.escape(membership)}; partitions held: {len(held)}</p>\n")
