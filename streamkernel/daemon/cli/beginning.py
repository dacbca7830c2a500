"""The commands of who begins: `schema`, `init` and `warm-up`."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Annotated

import typer

from streamkernel.daemon.cli.printing import to_json

__all__ = ["init", "schema", "warm_up"]


def schema() -> None:
    """Print the JSON Schema of the configuration, for editors."""
    from streamkernel.daemon.config.schema import Config

    dialect = {"$schema": "https://json-schema.org/draft/2020-12/schema"}
    print(to_json({**dialect, **Config.model_json_schema()}))


def init(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="CSV or JSON lines.", show_default=False)],
    target: Annotated[
        str | None, typer.Option(help="What is to be predicted; by default the column that looks most like it.")
    ] = None,
) -> None:
    """Print a configuration for a file, made from its first lines."""
    from streamkernel.daemon.init.configuration import configuration_for

    print(configuration_for(file, target), end="")


def warm_up() -> None:
    """Compile all that our models run on, for an image or before the first record; what is there is only loaded."""
    from streamkernel.estimators.warm_up import warm_up as compile_all

    logging.basicConfig(format="%(message)s")
    compile_all()
