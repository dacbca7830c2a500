"""The error of a configuration: one line for each mistake, all of them at once."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

__all__ = ["ConfigError", "dotted", "shown"]

_LONGEST_VALUE = 60


class ConfigError(Exception):
    r"""A configuration that cannot be used: one line for each mistake, with the path of the key it is about.

    Examples
    --------
    >>> str(ConfigError(["source: required", "mode: must be learn or predict, got 'lern'"]))
    "source: required\nmode: must be learn or predict, got 'lern'"

    """

    def __init__(self, lines: Sequence[str]) -> None:
        self.lines = list(lines)
        super().__init__("\n".join(self.lines))


def dotted(path: Iterable[str | int]) -> str:
    """Return the path of a key in dotted notation.

    Examples
    --------
    >>> dotted(["model", 1, "max_features"])
    'model[1].max_features'
    >>> dotted(["model", 0, "river.compose.Discard", "args"])
    'model[0].args'
    >>> dotted(["checkpoint", "\\n"])
    "checkpoint.'\\\\n'"

    """
    text = ""
    for part in path:
        if isinstance(part, int):
            text += f"[{part}]"
        elif "." in part:
            continue  # an object's name: the place it stands at already says which one is meant
        else:
            word = part if part.isprintable() else repr(part)
            text += f".{word}" if text else word
    return text


def shown(value: object) -> str:
    """Return a value of the configuration as an error line shows it: as YAML has it, cut where it is long."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    text = repr(value)
    return text if len(text) <= _LONGEST_VALUE else text[: _LONGEST_VALUE - 3] + "..."
