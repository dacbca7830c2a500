"""The program `streamkernel`: its commands in the order of the help, and the exit status of each end."""

from __future__ import annotations

import copy
import functools
import importlib
import logging
import os
import sys
from collections.abc import Callable, Sequence
from enum import StrEnum
from types import ModuleType
from typing import Annotated, Any

import typer
from typer.core import TyperCommand

from streamkernel.daemon.cli.beginning import configs, init, schema, warm_up
from streamkernel.daemon.cli.checkpoint_commands import inspect, promote, replay
from streamkernel.daemon.cli.distributed import spark
from streamkernel.daemon.cli.evaluating import evaluate
from streamkernel.daemon.cli.predicting import predict, serve
from streamkernel.daemon.cli.running import check, run

__all__ = ["app", "main"]

_log = logging.getLogger(__package__)

app = typer.Typer(
    name="streamkernel",
    help="Kernel machines that learn from an endless stream.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)


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


def completion(
    shell: Annotated[Shell, typer.Argument(metavar="bash|zsh|fish", help="The shell.", show_default=False)],
) -> None:
    """Print the script that completes commands and options in a shell."""
    os.environ["_STREAMKERNEL_COMPLETE"] = f"source_{shell.value}"  # how a shell asks for it
    app(args=[], prog_name="streamkernel")


class _Command(TyperCommand):
    """A command whose texts are UTF-8; the names of its files may be any that the system has."""

    def invoke(self, ctx: typer.Context) -> Any:  # type: ignore[override]
        from streamkernel.daemon.config.problems import require_text

        for parameter in self.params:
            given = ctx.params.get(str(parameter.name))
            name = parameter.opts[0] if parameter.param_type_name == "option" else str(parameter.metavar)
            for text in given if isinstance(given, list | tuple) else [given]:
                # FILE of predict is no Path: it may be standard input.
                if isinstance(text, str) and name != "FILE":
                    require_text(name, text)
        _put_off_scipy()
        return super().invoke(ctx)


class _WhenAsked(ModuleType):
    """A module that is imported when something of it is asked for."""

    def __getattr__(self, name: str) -> Any:
        value = getattr(importlib.import_module(self.__name__), name)
        setattr(self, name, value)
        return value


def _put_off_scipy() -> None:
    """Keep for later what River imports of scipy: it takes longer than all the rest, and few runs call any of it."""
    import scipy

    for name in ("sparse", "special"):
        if f"scipy.{name}" not in sys.modules:
            setattr(scipy, name, _WhenAsked(f"scipy.{name}"))


_COMMANDS: tuple[Callable[..., None], ...] = (
    run,
    check,
    evaluate,
    predict,
    serve,
    spark,
    replay,
    promote,
    inspect,
    schema,
    init,
    configs,
    completion,
    warm_up,
)
for _command in _COMMANDS:
    app.command(cls=_Command)(_command)


@functools.cache
def _command_line(asked: str = "") -> Callable[..., None]:
    """Make the command line, with one command where it is asked for: with all, it takes as long as a short run."""
    program = copy.copy(app)
    names = {_command.__name__.replace("_", "-"): place for place, _command in enumerate(_COMMANDS)}
    if asked in names:
        program.registered_commands = [app.registered_commands[names[asked]]]
    return typer.main.get_command(program)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line, by default with the arguments the program was started with; return its exit status.

    That is 0 when it went well, 1 for a failure, 2 for a bad configuration or command line.
    """
    try:
        given = sys.argv[1:] if arguments is None else arguments
        _command_line(*given[:1])(args=given, prog_name="streamkernel", standalone_mode=True)
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
    _log.debug("the full traceback", exc_info=error)
    if logging.getLogger().handlers:
        _log.error("%s", text)
    else:
        print(f"streamkernel: {visible(text)}", file=sys.stderr)
    return 1
