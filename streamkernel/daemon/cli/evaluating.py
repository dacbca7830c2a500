"""The command `evaluate`: one or several configurations on sources that end, and the files of what came out."""

from __future__ import annotations

import errno
import itertools
import logging
import os
import signal
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from streamkernel.daemon.cli.configured import SetOption, prepare, to_json

if TYPE_CHECKING:
    from streamkernel.daemon.config.plan import Plan
    from streamkernel.daemon.monitoring.evaluation import Evaluation

__all__ = ["evaluate"]

_log = logging.getLogger(__name__)


def evaluate(
    configs: Annotated[
        list[Path], typer.Argument(metavar="CONFIG...", help="One or several configurations.", show_default=False)
    ],
    plot: Annotated[
        Path | None, typer.Option(help="Draw loss, metric, features and drifts into this PNG file.")
    ] = None,
    html: Annotated[Path | None, typer.Option(help="Write a report of figures and charts into this HTML file.")] = None,
    json_file: Annotated[Path | None, typer.Option("--json", help="Write the figures into this file.")] = None,
    settings: SetOption = None,
) -> None:
    """Validate progressively on a source that ends: predict, then learn, write nothing."""
    from rich.console import Console

    from streamkernel.daemon.base.errors import DaemonError
    from streamkernel.daemon.evaluate import evaluate as evaluate_plan
    from streamkernel.daemon.monitoring.log import start_logging
    from streamkernel.daemon.monitoring.tables import summary
    from streamkernel.daemon.stream.stop import StopSignals

    for option, file in (("--plot", plot), ("--html", html)):
        if file is not None:
            from streamkernel.daemon.monitoring.charts import require_matplotlib

            require_matplotlib(option)  # before the work, not after it
    plans = [prepare(config, settings) for config in configs]
    files = {
        option: file for option, file in (("--json", json_file), ("--plot", plot), ("--html", html)) if file is not None
    }
    _check_files(files, plans)
    evaluations: dict[str, Evaluation] = {}
    missing, failure = [], None
    with StopSignals() as stopped:
        for name, plan in zip(_names(plans), plans, strict=True):
            if stopped() or failure is not None:
                missing.append(f"{name} did not start")
                continue
            start_logging(plan.config.log, plan.redact)
            try:
                evaluation = evaluate_plan(plan, stopped)
            except Exception as error:
                if not evaluations:
                    raise
                failure = error  # what the runs before it took hours for is written all the same
                missing.append(f"{name} failed")
                continue
            evaluations |= evaluation.by_model(name)
            if evaluation.stopped is not None:
                missing.append(f"{name} was stopped after {evaluation.records[-1]:,} records")
    if missing:
        _log.warning(
            "the evaluation is not complete: %s%s", f"{stopped.name} came, " if stopped() else "", ", ".join(missing)
        )
    failures = _write_files(files, evaluations)
    Console().print(summary({name: evaluation.view for name, evaluation in evaluations.items()}))
    if failure is not None:
        for text in failures:
            _log.error("%s", text)
        raise failure
    if failures:
        raise DaemonError("; ".join(failures))
    if missing and stopped.name is not None:  # what was asked for is not all there
        raise typer.Exit(128 + signal.Signals[stopped.name])


def _write_files(files: Mapping[str, Path], evaluations: Mapping[str, Evaluation]) -> list[str]:
    """Write all files that can be, for an evaluation may have taken hours; return a sentence for each other one."""
    from datetime import UTC, datetime

    from streamkernel.daemon.base.errors import DaemonError
    from streamkernel.daemon.monitoring.charts import plot
    from streamkernel.daemon.monitoring.report import report
    from streamkernel.daemon.monitoring.whole_file import write_whole

    failures = []
    for option, file in files.items():
        try:
            if option == "--plot":
                plot(evaluations, file)
            elif option == "--html":
                write_whole(file, report(evaluations, datetime.now(UTC)).encode())
            else:
                figures = {name: evaluation.to_json() for name, evaluation in evaluations.items()}
                write_whole(file, to_json(figures).encode() + b"\n")
        except DaemonError as error:
            failures.append(str(error))
    return failures


def _names(plans: Sequence[Plan]) -> list[str]:
    """Return the names of the runs, which are those of their files."""
    from streamkernel.daemon.config.problems import ConfigError, Problem
    from streamkernel.daemon.monitoring.visible import visible

    names = [visible(plan.path.stem) for plan in plans]
    if len(set(names)) < len(names):
        why = f"evaluate names the runs by their files, and these names repeat: {', '.join(names)}"
        raise ConfigError(Problem("", why))
    return names


def _check_files(files: Mapping[str, Path], plans: Sequence[Plan]) -> None:
    """Refuse files that cannot be written, or that are one file: before the work, not after it."""
    from streamkernel.daemon.base.errors import DaemonError
    from streamkernel.daemon.config.files import overwritten
    from streamkernel.daemon.config.problems import ConfigError, Problem

    for file in files.values():
        if (obstacle := _obstacle(file)) is not None:
            raise DaemonError(f"{file}: cannot be written: {os.strerror(obstacle)}")
    for (before, one), (option, other) in itertools.combinations(files.items(), 2):
        if _is_same(one, other):
            raise ConfigError(Problem(option, f"must differ from {before}, they are the same file"))
    for plan, (option, file) in itertools.product(plans, files.items()):
        if (key := overwritten(plan.config, plan.path, file)) is not None:
            raise ConfigError(Problem(option, f"must differ from {key} of {plan.path}, they are the same file"))


def _is_same(one: Path, other: Path) -> bool:
    """Return whether two names are of one file, by a link of either kind or another spelling."""
    if os.path.realpath(one) == os.path.realpath(other):
        return True
    return one.is_file() and other.is_file() and one.samefile(other)


def _obstacle(file: Path) -> int | None:
    """Return the error that writing the file would raise, or None if none is foreseen."""
    if file.is_dir():
        return errno.EISDIR
    if not file.parent.is_dir():
        return errno.ENOENT
    return None if os.access(file if file.exists() else file.parent, os.W_OK) else errno.EACCES
