"""The commands for a beginning: `configs`, `schema`, `init` and `warm-up`."""

from __future__ import annotations

import logging
import shlex
import sys
from pathlib import Path
from typing import Annotated

import typer

from streamkernel.daemon.cli.configured import to_json

__all__ = ["configs", "init", "schema", "warm_up"]


def configs(
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="A new or empty folder.", show_default=False)],
) -> None:
    """Write example configurations, systemd units and the Grafana and Prometheus mixin into a folder."""
    import shutil
    from importlib.resources import as_file, files

    from streamkernel.daemon.config.problems import ConfigError, Problem

    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise ConfigError(Problem("FOLDER", f"{folder} is not empty. Name a new folder"))
    with as_file(files("streamkernel") / "data") as data:
        shutil.copytree(data, folder, dirs_exist_ok=True)
    print(f"wrote {folder}. Try: cd {shlex.quote(str(folder))} && streamkernel run configs/quickstart.yaml")


def schema() -> None:
    """Print the JSON Schema of the configuration, for editors."""
    from streamkernel.daemon.config.schema import Config

    dialect = {"$schema": "https://json-schema.org/draft/2020-12/schema"}
    print(to_json({**dialect, **Config.model_json_schema()}))


def init(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="CSV or JSON lines.", show_default=False)],
    target: Annotated[
        str | None, typer.Option(help="The column to predict. Default: the column that looks most like a target.")
    ] = None,
) -> None:
    """Print a configuration for a file, made from its first lines."""
    from streamkernel.daemon.init.configuration import configuration_for
    from streamkernel.daemon.monitoring.visible import visible

    print(configuration_for(file, target, lambda said: print(visible(said), file=sys.stderr)), end="")


def warm_up() -> None:
    """Compile the code of all models now, not at the first record: for an image, for example."""
    from streamkernel.connectors.compiled import compile_connectors
    from streamkernel.estimators.warm_up import warm_up as compile_models

    logging.basicConfig(format="%(message)s")
    compile_connectors()
    compile_models()
