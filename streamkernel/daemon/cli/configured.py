"""What commands have in common: the argument and options of a configuration, its reading, and standard output."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from streamkernel.daemon.config.plan import Plan

__all__ = ["ConfigArgument", "FreshOption", "SetOption", "prepare", "prints_lines", "to_json"]

ConfigArgument = Annotated[
    Path,
    typer.Argument(metavar="CONFIG", help="The YAML configuration; '-' is standard input.", show_default=False),
]
FreshOption = Annotated[
    bool,
    typer.Option(
        "--fresh",
        help="Rename old checkpoints and output files to .old, which replaces those that --fresh renamed before, "
        "and start over.",
    ),
]
SetOption = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="KEY=VALUE", help="Set a value of the configuration. Repeatable."),
]


def prepare(path: Path, settings: Sequence[str] | None = None) -> Plan:
    """Read and check a configuration, with what `--set` puts into it, and start the log as it says."""
    from streamkernel.daemon.assembly.plan import prepare
    from streamkernel.daemon.config.overrides import parse_override
    from streamkernel.daemon.monitoring.log import start_logging

    plan = prepare(path, os.environ, [parse_override(one) for one in settings or ()])
    start_logging(plan.config.log, plan.redact)
    return plan


def prints_lines(plan: Plan) -> bool:
    """Return whether lines go to standard output: they are for the next program, and nothing else comes between."""
    outputs = (plan.config.predictions, plan.config.dead_letters)
    return any(getattr(output, "path", None) == "-" for output in outputs)


def to_json(value: Any) -> str:
    """Return a value as indented JSON; NaN becomes null."""
    import orjson

    return orjson.dumps(value, option=orjson.OPT_INDENT_2).decode()
