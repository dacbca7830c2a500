"""The command line: `streamkernel run`, `check`, `evaluate`, `predict`, `serve`, `replay`, `inspect` and others.

Every command imports what it needs itself: a moment's help must not wait for River.
"""

from __future__ import annotations

import errno
import json
import logging
import os
import sys
from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from streamkernel.daemon.config.plan import Plan
    from streamkernel.daemon.monitoring.evaluation import Evaluation

__all__ = ["app", "main"]

_log = logging.getLogger(__name__)

app = typer.Typer(
    name="streamkernel",
    help="Kernel machines that learn from an endless stream.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)

_Config = Annotated[
    Path,
    typer.Argument(metavar="CONFIG", help="The YAML configuration; '-' is standard input.", show_default=False),
]
_Set = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="KEY=VALUE", help="Put a value into the configuration; may be repeated."),
]


class Shell(StrEnum):
    """The shells that commands and options are completed in."""

    bash = "bash"
    zsh = "zsh"
    fish = "fish"


def _show_version(asked: bool) -> None:
    if asked:
        from importlib.metadata import version

        print(f"streamkernel {version('streamkernel')}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None: ...


@app.command()
def run(
    config: _Config,
    max_records: Annotated[int | None, typer.Option(min=0, help="Stop after this many records.")] = None,
    fresh: Annotated[bool, typer.Option("--fresh", help="Set old checkpoints aside and begin anew.")] = False,
    settings: _Set = None,
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

    plan = _prepare(config, settings)
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
    Console(stderr=_prints_lines(plan)).print(summary_table(view.by_model() or {plan.path.stem: view}))


@app.command()
def check(config: _Config, settings: _Set = None) -> None:
    """Validate everything, try the connections, and say what becomes of each column; start nothing."""
    from streamkernel.daemon.check import check as check_plan
    from streamkernel.daemon.monitoring.visible import visible

    plan = _prepare(config, settings)
    findings = check_plan(plan)
    for line in findings.good + findings.columns:
        print(visible(plan.redact(line)))
    for line in findings.bad:
        print(visible(plan.redact(line)), file=sys.stderr)
    if findings.bad:
        raise typer.Exit(1)
    print(f"{config} is fine")


@app.command()
def evaluate(
    configs: Annotated[
        list[Path], typer.Argument(metavar="CONFIG...", help="One or several configurations.", show_default=False)
    ],
    plot: Annotated[Path | None, typer.Option(help="Draw progressive loss and features into this PNG file.")] = None,
    json_file: Annotated[Path | None, typer.Option("--json", help="Write the figures into this file.")] = None,
    settings: _Set = None,
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
    plans = [_prepare(config, settings) for config in configs]
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
            json_file.write_text(_to_json(figures) + "\n")
        except OSError as error:
            raise DaemonError(f"{json_file}: cannot be written: {error.strerror}") from None
    if plot is not None:
        draw(evaluations, plot)


class _Format(StrEnum):
    jsonl = "jsonl"
    csv = "csv"


@app.command()
def predict(
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="A checkpoint file or directory.", show_default=False)],
    file: Annotated[
        str, typer.Argument(metavar="FILE", help="CSV or JSON lines; - is standard input.", show_default=False)
    ],
    output: Annotated[_Format, typer.Option("--format", help="How to write the predictions.")] = _Format.jsonl,
    kind: Annotated[
        _Format | None,
        typer.Option("--input-format", help="What FILE holds; by default as its name says."),
    ] = None,
    target: Annotated[str | None, typer.Option(help="The column or key of the label, where there is one.")] = None,
    target_type: Annotated[str | None, typer.Option(help="What the label is: str, int, bool or float.")] = None,
    delimiter: Annotated[str | None, typer.Option(help="What separates the fields of CSV; \\t is a tab.")] = None,
    encoding: Annotated[str | None, typer.Option(help="How the text of CSV is encoded.")] = None,
    multiline: Annotated[
        bool | None, typer.Option("--multiline/--no-multiline", help="A quoted field of CSV may hold line ends.")
    ] = None,
    include: Annotated[
        list[str] | None, typer.Option(help="A column or key of FILE that passes through; may be repeated.")
    ] = None,
    imports: Annotated[
        list[str] | None, typer.Option(help="A package under imports of the configuration; may be repeated.")
    ] = None,
    name: Annotated[
        str, typer.Option("--model", help="Which of several models; by default the published one.", show_default=False)
    ] = "",
) -> None:
    """Predict the records of a file with the model of a checkpoint, to standard output.

    What is not said about FILE is as in the configuration that the model was learnt with.
    """
    import signal

    from streamkernel.daemon.predict import PredictRequest
    from streamkernel.daemon.predict import predict as predict_file
    from streamkernel.daemon.stream.stop import StopSignals

    given = {
        "target": target,
        "target_type": target_type,
        "delimiter": "\t" if delimiter == "\\t" else delimiter,  # a shell leaves it as it is typed
        "encoding": encoding,
        "multiline": multiline,
    }
    options = {key: value for key, value in given.items() if value is not None}
    with StopSignals() as stopped:
        request = PredictRequest(model, file, kind, output, options, imports or [], include or [], name)
        predict_file(request, stopped)
    if stopped.name is not None:  # not all of the file is predicted
        raise typer.Exit(128 + signal.Signals[stopped.name])


@app.command()
def serve(config: _Config, settings: _Set = None) -> None:
    """Serve predictions over HTTP from the checkpoints of a run, and take what it is to learn."""
    from streamkernel.daemon.service.run import serve as serve_predictions

    serve_predictions(_prepare(config, settings))


@app.command()
def replay(
    dead_letters: Annotated[
        Path, typer.Argument(metavar="DEAD_LETTERS", help="A file of dead letters, mended.", show_default=False)
    ],
    config: _Config,
    settings: _Set = None,
) -> None:
    """Predict and learn mended dead letters, each once, while the daemon is stopped."""
    from streamkernel.daemon.monitoring.visible import visible
    from streamkernel.daemon.replay.run import replay as replay_letters

    plan = _prepare(config, settings)
    report = replay_letters(plan, dead_letters)
    print(visible(plan.redact(report.sentence())), file=sys.stderr if _prints_lines(plan) else sys.stdout)
    if report.n_still_dead:
        raise typer.Exit(1)


@app.command()
def promote(
    config: _Config,
    name: Annotated[str, typer.Argument(metavar="NAME", help="One of the models.", show_default=False)],
    settings: _Set = None,
) -> None:
    """Publish another one of several models from the next record on, while the daemon is stopped."""
    from streamkernel.daemon.monitoring.visible import visible
    from streamkernel.daemon.promote import promote as promote_model

    plan = _prepare(config, settings)
    for line in promote_model(plan, name):
        print(visible(plan.redact(line)))


@app.command()
def inspect(
    checkpoint: Annotated[
        Path, typer.Argument(metavar="CHECKPOINT", help="A checkpoint file or directory.", show_default=False)
    ],
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Say what a checkpoint file or directory holds."""
    from rich.console import Console

    from streamkernel.daemon.monitoring.describe import describe, description_table

    described = describe(checkpoint)
    if as_json:
        # In ASCII: what a record brought must not steer the terminal. And orjson knows no number of more than 64 bits.
        print(json.dumps(described, indent=2))
    else:
        Console().print(description_table(described))


@app.command()
def migrate(
    directory: Annotated[
        Path,
        typer.Argument(metavar="DIRECTORY", help="A checkpoint directory that no daemon holds.", show_default=False),
    ],
    imports: Annotated[
        list[str] | None, typer.Option(help="A package under imports of the configuration; may be repeated.")
    ] = None,
) -> None:
    """Write the newest checkpoint of a directory as the next one, in the newest format."""
    from streamkernel.daemon.migrate import migrate as migrate_directory
    from streamkernel.daemon.monitoring.visible import visible

    for line in migrate_directory(directory, imports or []):
        print(visible(line))


@app.command()
def schema() -> None:
    """Print the JSON Schema of the configuration, for editors."""
    from streamkernel.daemon.config.schema import Config

    dialect = {"$schema": "https://json-schema.org/draft/2020-12/schema"}
    print(_to_json({**dialect, **Config.model_json_schema()}))


@app.command()
def init(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="CSV or JSON lines.", show_default=False)],
    target: Annotated[
        str | None, typer.Option(help="What is to be predicted; by default the column that looks most like it.")
    ] = None,
) -> None:
    """Print a configuration for a file, made from its first lines."""
    from streamkernel.daemon.init.configuration import configuration_for

    print(configuration_for(file, target), end="")


@app.command()
def completion(
    shell: Annotated[Shell, typer.Argument(metavar="bash|zsh|fish", help="The shell.", show_default=False)],
) -> None:
    """Print the script by which a shell completes commands and options."""
    os.environ["_STREAMKERNEL_COMPLETE"] = f"source_{shell.value}"  # how a shell asks for it
    app(args=[], prog_name="streamkernel")


@app.command("warm-up")
def warm_up() -> None:
    """Compile all that our models run on, for an image or before the first record; what is there is only loaded."""
    from streamkernel.estimators.warm_up import warm_up as compile_all

    logging.basicConfig(format="%(message)s")
    compile_all()


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line, by default with the arguments the program was started with; return its exit status.

    That is 0 when it went well, 1 for a failure, 2 for a bad configuration or command line.
    """
    try:
        app(args=arguments, prog_name="streamkernel", standalone_mode=True)
    except SystemExit as end:  # how typer ends
        return end.code if isinstance(end.code, int) else int(end.code is not None)
    except BrokenPipeError:
        # The reader of our output has gone; Python would complain once more when it flushes at the end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except KeyboardInterrupt:
        return 130
    except Exception as error:
        return _failed(error)
    return 0


def _failed(error: Exception) -> int:
    from streamkernel.daemon.config.problems import ConfigError
    from streamkernel.daemon.failure import sentence
    from streamkernel.daemon.monitoring.visible import visible

    if isinstance(error, ConfigError):
        print("\n".join(map(visible, error.lines)), file=sys.stderr)
        return 2
    text = sentence(error)
    _log.debug("the failure in full", exc_info=error)
    if logging.getLogger().handlers:
        _log.error("%s", text)
    else:
        print(f"streamkernel: {visible(text)}", file=sys.stderr)
    return 1


def _prepare(path: Path, settings: Sequence[str] | None = None) -> Plan:
    """Read and check a configuration, with what `--set` puts into it, and start the log as it says."""
    from streamkernel.daemon.config.overrides import parse_override
    from streamkernel.daemon.monitoring.log import start_logging
    from streamkernel.daemon.wiring.plan import prepare

    plan = prepare(path, os.environ, [parse_override(one) for one in settings or ()])
    start_logging(plan.config.log, plan.redact)
    return plan


def _obstacle(file: Path) -> int | None:
    """Return the error that writing a file will end in, as far as that can be told; None where it cannot."""
    if file.is_dir():
        return errno.EISDIR
    if not file.parent.is_dir():
        return errno.ENOENT
    return None if os.access(file if file.exists() else file.parent, os.W_OK) else errno.EACCES


def _prints_lines(plan: Plan) -> bool:
    """Return whether lines go to standard output: they are for the next program, and nothing else comes between."""
    outputs = (plan.config.predictions, plan.config.dead_letters)
    return any(getattr(output, "path", None) == "-" for output in outputs)


def _to_json(value: Any) -> str:
    import orjson

    return orjson.dumps(value, option=orjson.OPT_INDENT_2).decode()  # NaN becomes null: JSON has no other word for it
