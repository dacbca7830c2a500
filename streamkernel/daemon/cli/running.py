"""The commands that go through the source of a configuration: `run` and `check`."""

from __future__ import annotations

import logging
import sys
from typing import Annotated

import typer

from streamkernel.daemon.cli.configured import ConfigArgument, FreshOption, SetOption, prepare, prints_lines

__all__ = ["check", "run"]

_log = logging.getLogger(__package__)  # all commands log under one name


def run(
    config: ConfigArgument,
    max_records: Annotated[int | None, typer.Option(min=0, help="Stop after this many records.")] = None,
    fresh: FreshOption = False,
    settings: SetOption = None,
    partition: Annotated[int | None, typer.Option(hidden=True)] = None,
    member: Annotated[int, typer.Option(hidden=True)] = 0,
) -> None:
    """Run the daemon: predict, then learn, checkpoint, export."""
    if partition is not None:  # how the member of a group starts its children
        from streamkernel.daemon.partition import run_partition

        raise typer.Exit(run_partition(config, partition, member))

    from streamkernel.daemon.components.group_mode import group_of
    from streamkernel.daemon.config.problems import ConfigError, Problem
    from streamkernel.daemon.runtime import run as run_daemon
    from streamkernel.daemon.stream.stop import Stopped

    plan = prepare(config, settings)
    if group_of(plan.config) is not None:
        from streamkernel.daemon.group.member import run_member

        if fresh:
            raise ConfigError(
                Problem(
                    "--fresh",
                    "not with source.group: stop all members, and move the directories of the partitions away",
                )
            )
        if max_records is not None:
            raise ConfigError(Problem("--max-records", "not with source.group: each partition has its own daemon"))
        run_member(plan)
        return
    try:
        view = run_daemon(plan, fresh=fresh, max_records=max_records)
    except Stopped as stop:
        _log.info("%s", stop)
        return
    # Only the end of a run needs them.
    from rich.console import Console

    from streamkernel.daemon.monitoring.tables import summary

    Console(stderr=prints_lines(plan)).print(summary(view.by_model() or {plan.path.stem: view}))


def check(config: ConfigArgument, settings: SetOption = None) -> None:
    """Validate the configuration, try the connections and the next records, show each column's use. Write nothing."""
    from streamkernel.daemon.check import check as check_plan
    from streamkernel.daemon.monitoring.visible import visible

    plan = prepare(config, settings)
    findings = check_plan(plan)
    for line in findings.good + findings.columns:
        print(visible(plan.redact(line)))
    sys.stdout.flush()  # the errors come last, whatever collects both
    for line in findings.bad:
        print(visible(f"error: {plan.redact(line)}"), file=sys.stderr)
    if findings.bad:
        raise typer.Exit(1)
    print(visible(f"{config} is fine"))
