"""The progress bar, where standard error is a terminal."""

from __future__ import annotations

import contextlib
import math
import sys
from collections.abc import Callable, Iterator

from streamkernel.daemon.monitoring.view import View

__all__ = ["show_progress"]


@contextlib.contextmanager
def show_progress(
    title: str, total: int | None, start: int = 0, alone: bool = True
) -> Iterator[Callable[[View], None]]:
    """Show a bar on standard error while the context is entered, or nothing where that is no terminal of ours alone.

    The total and the start are offsets of the source; without a total, the bar pulses. What is yielded takes each view.
    """
    if not (alone and sys.stderr.isatty()):
        yield lambda _: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn

    console = Console(stderr=True)
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TaskProgressColumn(),
        TextColumn("{task.fields[state]}"),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as progress:
        task = progress.add_task(title, total=total, completed=start, state="")

        def show(view: View) -> None:
            features = f"  {view.growth['features']:,} features" if "features" in view.growth else ""
            dead = f"  {view.account['dead']:,} dead letters"
            rate = "" if math.isnan(view.rate) else f"{view.rate:,.0f} records/s  "
            loss = "" if math.isnan(view.loss) else f"loss {view.loss:.4f}"
            state = f"{rate}{loss}{features}{dead}"
            progress.update(task, completed=view.offset, state=state)

        yield show
