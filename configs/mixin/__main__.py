"""The command that writes the files of the mixin: `python -m configs.mixin`."""

from __future__ import annotations

import argparse
import dataclasses
from pathlib import Path

from configs.mixin.render import rendered
from configs.mixin.settings import AlertBounds, MixinSettings

_FOLDER = Path(__file__).parent


def _bounds(parser: argparse.ArgumentParser, given: list[str]) -> AlertBounds:
    known = {field.name for field in dataclasses.fields(AlertBounds)}
    changed = {}
    for text in given:
        name, _, value = text.partition("=")
        try:
            changed[name] = float(value)
        except ValueError:
            parser.error(f"--bound {text}: give NAME=NUMBER, such as --bound dead_letter_share=0.05")
        if name not in known:
            parser.error(f"--bound {text}: there is no bound {name}; there are {', '.join(sorted(known))}")
    return dataclasses.replace(AlertBounds(), **changed)


def main(arguments: list[str] | None = None) -> None:
    """Write the files of the mixin."""
    default = MixinSettings()
    parser = argparse.ArgumentParser(prog="python -m configs.mixin", description="Write the files of the mixin.")
    parser.add_argument("--output", type=Path, default=_FOLDER, help="the folder to write to; default: the mixin's own")
    parser.add_argument(
        "--runbooks", default=default.runbooks, help=f"where the runbooks are; default: {default.runbooks}"
    )
    parser.add_argument(
        "--dashboards", default=default.dashboards, help=f"where the boards are found; default: {default.dashboards}"
    )
    parser.add_argument(
        "--selector", default=default.selector, help=f"matches the targets; default: {default.selector}"
    )
    parser.add_argument(
        "--bound",
        action="append",
        default=[],
        metavar="NAME=NUMBER",
        help="change a bound of an alert; may be repeated",
    )
    options = parser.parse_args(arguments)
    settings = MixinSettings(
        options.runbooks.rstrip("/"), options.dashboards, options.selector, _bounds(parser, options.bound)
    )
    for name, text in rendered(settings).items():
        path = options.output / name
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        except OSError as error:
            parser.exit(1, f"{path} cannot be written: {error.strerror}: give another folder as --output\n")


if __name__ == "__main__":
    main()
