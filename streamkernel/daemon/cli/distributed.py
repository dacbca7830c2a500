"""The command `spark`: a configuration as a job on Apache Spark."""

from __future__ import annotations

import importlib.util
import re
from typing import Annotated

import typer

from streamkernel.daemon.cli.configured import ConfigArgument, FreshOption, SetOption, prepare
from streamkernel.daemon.config.problems import ConfigError, Problem

__all__ = ["spark"]

#: As Spark writes intervals: numbers with their units.
_INTERVAL = re.compile(r"(?i)\s*(interval\s+)?(\d+(\.\d+)?\s+(millisecond|second|minute|hour|day)s?\s*)+")


def spark(
    config: ConfigArgument,
    checkpoint_location: Annotated[
        str | None,
        typer.Option(
            help="Where Spark keeps its offsets and commits. Default: the folder spark in checkpoint.directory.",
            show_default=False,
        ),
    ] = None,
    trigger: Annotated[
        str | None,
        typer.Option(help='The time from one micro-batch to the next, such as "10 seconds".', show_default=False),
    ] = None,
    max_per_batch: Annotated[
        int | None,
        typer.Option(min=1, help="The maximum number of messages, or files, per micro-batch.", show_default=False),
    ] = None,
    until_end: Annotated[
        bool, typer.Option("--until-end", help="Stop after learning everything that exists at the start.")
    ] = False,
    fresh: FreshOption = False,
    settings: SetOption = None,
) -> None:
    """Learn on Apache Spark: a batch step for each micro-batch, on all executors."""
    from rich.console import Console

    from streamkernel.daemon.base.errors import DaemonError
    from streamkernel.daemon.monitoring.tables import summary

    if trigger is not None and until_end:
        raise ConfigError(Problem("--trigger", "not together with --until-end: use one of them"))
    if trigger is not None and not _INTERVAL.fullmatch(trigger):
        raise ConfigError(Problem("--trigger", f"{trigger!r} is not an interval like '10 seconds' or '1 minute'"))
    plan = prepare(config, settings)
    if importlib.util.find_spec("pyspark") is None:
        raise DaemonError("Spark is not installed: pip install 'streamkernel[spark]'; it needs Java 17, too")
    from streamkernel.spark.job import JobOptions, run_job

    options = JobOptions(checkpoint_location, trigger, max_per_batch, until_end, fresh)
    view = run_job(plan, options)
    Console(stderr=True).print(summary({plan.path.stem: view}))
