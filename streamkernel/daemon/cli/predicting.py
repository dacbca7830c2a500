"""The commands that predict with the model of a checkpoint: `predict` a file, `serve` over HTTP."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from streamkernel.daemon.cli.configured import ConfigArgument, SetOption, prepare

__all__ = ["predict", "serve"]


class _Format(StrEnum):
    jsonl = "jsonl"
    csv = "csv"


def predict(
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="A checkpoint file or directory.", show_default=False)],
    file: Annotated[
        str, typer.Argument(metavar="FILE", help="CSV or JSON lines; - is standard input.", show_default=False)
    ],
    output: Annotated[_Format, typer.Option("--format", help="How to write the predictions.")] = _Format.jsonl,
    kind: Annotated[
        _Format | None,
        typer.Option("--input-format", help="The format of FILE. Default: its name decides."),
    ] = None,
    target: Annotated[str | None, typer.Option(help="The column or key of the label, if there is one.")] = None,
    target_type: Annotated[str | None, typer.Option(help="The type of the label: str, int, bool or float.")] = None,
    delimiter: Annotated[str | None, typer.Option(help="The field separator of CSV; \\t is a tab.")] = None,
    encoding: Annotated[str | None, typer.Option(help="The encoding of CSV.")] = None,
    multiline: Annotated[
        bool | None,
        typer.Option("--multiline/--no-multiline", help="Whether a quoted CSV field may contain line ends."),
    ] = None,
    include: Annotated[
        list[str] | None, typer.Option(help="A column or key of FILE to pass through. Repeatable.")
    ] = None,
    imports: Annotated[
        list[str] | None, typer.Option(help="A trusted package, as under imports in the configuration. Repeatable.")
    ] = None,
    name: Annotated[
        str,
        typer.Option(
            "--model", help="Which of several models predicts. Default: the published one.", show_default=False
        ),
    ] = "",
) -> None:
    """Predict the records of a file with the model of a checkpoint, to standard output.

    Options about FILE that you leave out come from the configuration in the checkpoint.
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


def serve(
    config: ConfigArgument,
    settings: SetOption = None,
    partition: Annotated[
        int | None, typer.Option(min=0, help="With source.group: the partition of the model to serve.")
    ] = None,
) -> None:
    """Serve predictions over HTTP from the checkpoints of a run. Accept records and labels to learn."""
    from streamkernel.daemon.serve.run import serve as serve_predictions

    serve_predictions(prepare(config, settings), partition)
