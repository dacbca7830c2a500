"""Mistakes in a configuration as objects, the error that carries them, and how both become text."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple

__all__ = ["ConfigError", "Problem", "dotted", "require_text", "shown", "why_no_text"]

_LONGEST_VALUE = 60
_SURROGATE = re.compile("[\ud800-\udfff]")
# Python reads bytes that are not UTF-8, in arguments, variables and names of files, as these code points.
_BYTES = range(0xDC80, 0xDD00)


class Problem(NamedTuple):
    """One mistake in a configuration.

    Attributes
    ----------
    path
        The key in dotted notation, an option of the command line, or a file; empty: none of these.
    message
        What is wrong there, and what to do.

    Examples
    --------
    >>> str(Problem("metrics.port", "must be > 0, got -1"))
    'metrics.port: must be > 0, got -1'

    """

    path: str
    message: str

    def __str__(self) -> str:
        return f"{self.path}: {self.message}" if self.path else self.message

    def within(self, key: str) -> bool:
        """Return whether the path is a key, or below it.

        Examples
        --------
        >>> Problem("model[0].seed", "").within("model"), Problem("models", "").within("model")
        (True, False)

        """
        return self.path == key or self.path.startswith((f"{key}.", f"{key}["))


class ConfigError(Exception):
    r"""A configuration that cannot be used, with all of its mistakes.

    Examples
    --------
    >>> str(ConfigError(Problem("source", "required"), Problem("mode", "must be learn or predict, got 'lern'")))
    "source: required\nmode: must be learn or predict, got 'lern'"

    """

    def __init__(self, *problems: Problem) -> None:
        self.problems = problems
        super().__init__(*problems)

    def __str__(self) -> str:
        return "\n".join(self.lines)

    @property
    def lines(self) -> list[str]:
        """One line of text for each mistake."""
        return list(map(str, self.problems))


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
        elif "." not in part:  # the name of a class is left out: its place says which one is meant
            word = part if part.isprintable() else repr(part)
            text += f".{word}" if text else word
    return text


def shown(value: object) -> str:
    """Return a value of the configuration as an error shows it: as YAML has it, cut if it is long."""
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    text = repr(value)
    return text if len(text) <= _LONGEST_VALUE else text[: _LONGEST_VALUE - 3] + "..."


def why_no_text(text: str) -> str | None:
    r"""Return why UTF-8 cannot hold a text, and what to do; None if it can.

    Examples
    --------
    >>> why_no_text("zwölf")
    >>> why_no_text("caf\udce9")
    'the byte 0xe9 is not UTF-8: write the text in UTF-8, and rename a file with such a name or use a pattern'
    >>> print(why_no_text("\ud83d"))
    \ud83d is half of a character: write the whole one, as it is or as \U with eight digits

    """
    if (found := _SURROGATE.search(text)) is None:
        return None
    if (code := ord(found[0])) in _BYTES:
        what = f"the byte {code - 0xDC00:#04x} is not UTF-8"
        return f"{what}: write the text in UTF-8, and rename a file with such a name or use a pattern"
    return f"\\u{code:04x} is half of a character: write the whole one, as it is or as \\U with eight digits"


def require_text(key: str, text: str) -> None:
    """Raise `ConfigError` if UTF-8 cannot hold the text of a key or an option."""
    if (why := why_no_text(text)) is not None:
        raise ConfigError(Problem(key, why))
