"""The commands that go through the source of a configuration: `run`, `check` and `evaluate`."""

from __future__ import annotations

import errno
import logging
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from streamkernel.daemon.cli.configured import ConfigArgument, SetOption, prepare
from streamkernel.daemon.cli.printing import prints_lines, to_json

if TYPE_CHECKING:
    from streamkernel.daemon.monitoring.evaluation import Evaluation

__all__ = ["check", "evaluate", "run"]

_log = logging.getLogger(__package__)  # all commands log under one name


def run(
    config: ConfigArgument,
    max_records: Annotated[int | None, typer.Option(min=0, help="Stop after this many records.")] = None,
    fresh: Annotated[bool, typer.Option("--fresh", help="Set old checkpoints aside and begin anew.")] = False,
    settings: SetOption = None,
    partition: Annotated[int | None, typer.Option(hidden=True)] = None,
    member: Annotated[int, typer.Option(hidden=True)] = 0,
) -> None:
    """Run the daemon: predict, then learn, checkpoint, export."""
    from rich.console import Console

    if partition is not None:  # how the member of a group starts its children
        from streamkernel.daemon.partition import run_partition

        raise typer.Exit(run_partition(config, partition, member))

    from streamkernel.daemon.config.grouped import group_of
    from streamkernel.daemon.config.problems import ConfigError
    from streamkernel.daemon.monitoring.summary import summary_table
    from streamkernel.daemon.runtime import run as run_daemon
    from streamkernel.daemon.stream.stop import Stopped

    plan = prepare(config, settings)
    if group_of(plan.config) is not None:
        from streamkernel.daemon.group.member import run_member

        if fresh:
            raise ConfigError(
                ["--fresh: not with source.group: stop all members, and move the directories of the partitions away"]
            )
        if max_records is not None:
            raise ConfigError(["--max-records: not with source.group: each partition has a daemon of its own"])
        run_member(plan)
        return
    try:
        view = run_daemon(plan, fresh=fresh, max_records=max_records)
    except Stopped as stop:
        _log.info("%s", stop)
        return
    Console(stderr=prints_lines(plan)).print(summary_table(view.by_model() or {plan.path.stem: view}))


def check(config: ConfigArgument, settings: SetOption = None) -> None:
    """Validate everything, try the connections, and say what becomes of each column; start nothing."""
    from streamkernel.daemon.check import check as check_plan
    from streamkernel.daemon.monitoring.visible import visible

    plan = prepare(config, settings)
    findings = check_plan(plan)
    for line in findings.good + findings.columns:
        print(visible(plan.redact(line)))
    for line in findings.bad:
        print(visible(plan.redact(line)), file=sys.stderr)
    if findings.bad:
        raise typer.Exit(1)
    print(f"{config} is fine")


def evaluate(
    configs: Annotated[
        list[Path], typer.Argument(metavar="CONFIG...", help="One or several configurations.", show_default=False)
    ],
    plot: Annotated[Path | None, typer.Option(help="Draw progressive loss and features into this PNG file.")] = None,
    json_file: Annotated[Path | None, typer.Option("--json", help="Write the figures into this file.")] = None,
    settings: SetOption = None,
) -> None:
    """Validate progressively on a source that ends: predict, then learn, write nothing."""
    from rich.console import Console

    from streamkernel.daemon.base.errors import DaemonError
    from streamkernel.daemon.config.files import overwritten
    from streamkernel.daemon.config.problems import ConfigError
    from streamkernel.daemon.evaluate import evaluate as evaluate_plan
    from streamkernel.daemon.monitoring.log import start_logging
    from streamkernel.daemon.monitoring.summary import summary_table
    from streamkernel.daemon.stream.stop import StopSignals

    if plot is not None:
        from streamkernel.daemon.monitoring.plot import plot as draw
        from streamkernel.daemon.monitoring.plot import require_matplotlib

        require_matplotlib()  # before the work, not after it
    plans = [prepare(config, settings) for config in configs]
    for file in (json_file, plot):  # before the work, not after it
        if file is not None and (obstacle := _obstacle(file)) is not None:
            raise DaemonError(f"{file}: cannot be written: {os.strerror(obstacle)}")
    if plot is not None and json_file is not None and os.path.realpath(plot) == os.path.realpath(json_file):
        raise ConfigError(["--plot: must differ from --json, they are the same file"])
    for plan in plans:
        for option, file in (("--json", json_file), ("--plot", plot)):
            key = None if file is None else overwritten(plan.config, plan.path, file)
            if key is not None:
                raise ConfigError([f"{option}: must differ from {key} of {plan.path}, they are the same file"])
    names = [plan.path.stem for plan in plans]
    if len(set(names)) < len(names):
        raise ConfigError([f"evaluate names the runs by their files, and these names repeat: {', '.join(names)}"])
    evaluations: dict[str, Evaluation] = {}
    with StopSignals() as stopped:
        for name, plan in zip(names, plans, strict=True):
            if not stopped():
                start_logging(plan.config.log, plan.redact)
                evaluations |= evaluate_plan(plan, stopped).by_model(name)
    Console().print(summary_table({name: evaluation.view for name, evaluation in evaluations.items()}))
    if json_file is not None:
        figures = {name: evaluation.to_json() for name, evaluation in evaluations.items()}
        try:
            json_file.write_text(to_json(figures) + "\n")
        except OSError as error:
            raise DaemonError(f"{json_file}: cannot be written: {error.strerror}") from None
    if plot is not None:
        draw(evaluations, plot)


def _obstacle(file: Path) -> int | None:
    """Return the error that writing a file will end in, as far as that can be told; None where it cannot."""
    if file.is_dir():
        return errno.EISDIR
    if not file.parent.is_dir():
        return errno.ENOENT
    return None if os.access(file if file.exists() else file.parent, os.W_OK) else errno.EACCES
