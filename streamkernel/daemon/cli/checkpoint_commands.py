"""The commands about what a run has kept: `replay`, `promote` and `inspect`."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path
from typing import Annotated

import typer

from streamkernel.daemon.cli.configured import ConfigArgument, SetOption, prepare, prints_lines

__all__ = ["inspect", "promote", "replay"]


def replay(
    dead_letters: Annotated[
        Path, typer.Argument(metavar="DEAD_LETTERS", help="A file of fixed dead letters.", show_default=False)
    ],
    config: ConfigArgument,
    settings: SetOption = None,
) -> None:
    """Predict and learn fixed dead letters, each once, while the daemon is stopped."""
    from streamkernel.daemon.monitoring.visible import visible
    from streamkernel.daemon.replay.run import replay as replay_letters

    plan = prepare(config, settings)
    report = replay_letters(plan, dead_letters)
    print(visible(plan.redact(report.sentence())), file=sys.stderr if prints_lines(plan) else sys.stdout)
    if report.n_still_dead:
        raise typer.Exit(1)


def promote(
    config: ConfigArgument,
    name: Annotated[str, typer.Argument(metavar="NAME", help="The name of the model to publish.", show_default=False)],
    settings: SetOption = None,
) -> None:
    """Publish another model from the next record on, while the daemon is stopped."""
    from streamkernel.daemon.monitoring.visible import visible
    from streamkernel.daemon.promote import promote as promote_model

    plan = prepare(config, settings)
    for line in promote_model(plan, name):
        print(visible(plan.redact(line)))


def inspect(
    checkpoint: Annotated[
        Path, typer.Argument(metavar="CHECKPOINT", help="A checkpoint file or directory.", show_default=False)
    ],
    every: Annotated[bool, typer.Option("--all", help="Print all that its header holds.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON, which has all of it.")] = False,
) -> None:
    """Say what a checkpoint file or directory holds."""
    from streamkernel.daemon.monitoring.inspection import describe, description_lines

    described = describe(checkpoint)
    if as_json:
        # In ASCII: what a record brought must not steer the terminal. And orjson knows no number of more than 64 bits.
        print(json.dumps(described, indent=2))
    else:
        print("\n".join(description_lines(described, shutil.get_terminal_size().columns, every)))
