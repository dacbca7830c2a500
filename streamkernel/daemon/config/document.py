"""The document of a configuration: its tree with and without the values of environment variables."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from streamkernel.connectors.os_reason import os_reason
from streamkernel.daemon.config.overrides import Override, override
from streamkernel.daemon.config.problems import ConfigError, Problem, dotted, why_no_text
from streamkernel.daemon.config.secrets import Redactor, secrets
from streamkernel.daemon.config.yaml_text import UNREADABLE, load, syntax_problem, typed

__all__ = ["STANDARD_INPUT", "Document", "document_of", "parse", "read"]

STANDARD_INPUT = "-"
"""The path of a configuration that comes from standard input."""

_VARIABLE = re.compile(r"\$\{([^}]*)\}?")
_LONGEST_WORD = 3
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")
# No schema turns the values under these keys into numbers, so a variable there is typed as YAML would type it.
_FREELY_TYPED = (("model",), ("models",), ("source", "args"), ("labels", "source", "args"))


@dataclass(frozen=True)
class Document:
    """The tree of a YAML file, with its ``${VAR}`` and with their values."""

    raw: dict[str, Any]  # each ``${VAR}`` as written: what may be logged, hashed and stored
    values: dict[str, Any]  # the variables replaced: what the daemon builds from
    problems: tuple[Problem, ...] = ()  # mistakes found so far
    redact: Redactor = field(default_factory=lambda: Redactor({}))  # takes the secrets out of a text
    # By the dotted path of a key, name and value of the environment variables it used.
    variables: Mapping[str, Mapping[str, str]] = field(default_factory=dict)

    def as_written(self, problem: Problem) -> Problem:
        """Return a problem without secrets, and with ``${VAR}`` in place of the value of the variable.

        Examples
        --------
        >>> document = parse("{mode: '${MODE}', seed: '${SEED}'}", environment={"MODE": "lern", "SEED": "1"})
        >>> str(document.as_written(Problem("mode", "must be learn or predict, got 'lern' (1)")))
        "mode: must be learn or predict, got '${MODE}' (1)"

        """
        path, text = problem
        for key, used in self.variables.items():
            for name, value in used.items() if Problem(key, "").within(path) else ():
                # A short value of a key further down may be in the message by chance.
                if value and (key == path or len(value) > _LONGEST_WORD):
                    found = re.escape(value) if len(value) > _LONGEST_WORD else rf"(?<!\w){re.escape(value)}(?!\w)"
                    text = re.sub(found, f"${{{name}}}", text)
        return Problem(self.redact(path), self.redact(text))


def read(path: Path, environment: Mapping[str, str] = os.environ, overrides: Sequence[Override] = ()) -> Document:
    """Return the document of a YAML file, or of standard input if the path is ``-``; see `parse`.

    Raises
    ------
    ConfigError
        If the file cannot be read or is not YAML.

    """
    standard = str(path) == STANDARD_INPUT
    name = "standard input" if standard else str(path)
    try:
        text = (sys.stdin.buffer.read() if standard else path.read_bytes()).decode("utf-8-sig")
    except OSError as error:
        raise ConfigError(Problem(name, f"cannot be read: {os_reason(error)}")) from None
    except UnicodeDecodeError as error:
        raise ConfigError(Problem(name, f"is not UTF-8 text (byte {error.start})")) from None
    return parse(text, name, environment, overrides)


def parse(
    text: str,
    name: str = "configuration",
    environment: Mapping[str, str] = os.environ,
    overrides: Sequence[Override] = (),
) -> Document:
    """Return the document of a text, with overrides and the values of environment variables.

    Parameters
    ----------
    text, name
        The text, and what errors call it.
    environment
        The variables.
    overrides
        Values for keys; they may hold variables as well.

    Raises
    ------
    ConfigError
        If it is not YAML or no mapping, or if UTF-8 cannot hold one of its texts.

    Examples
    --------
    >>> document = parse("source: {path: '${HOME}/a.csv'}", environment={"HOME": "/root"})
    >>> document.raw["source"]["path"], document.values["source"]["path"]
    ('${HOME}/a.csv', '/root/a.csv')

    """
    try:
        raw, doubles = load(text)
        if not isinstance(raw, dict):
            found = "nothing" if raw is None else f"a {type(raw).__name__}"
            raise ConfigError(Problem(name, f"must hold a mapping with the keys source and model, holds {found}"))
        return document_of(override(raw, overrides), environment, doubles)
    except UNREADABLE as error:
        place, why = syntax_problem(text, error)
        raise ConfigError(Problem(f"{name}, {place}" if place else name, why)) from None


def document_of(
    raw: Mapping[str, Any], environment: Mapping[str, str] = os.environ, problems: Sequence[Problem] = ()
) -> Document:
    """Return the document of a tree, in which `parse` found problems already; `ConfigError` as there."""
    expansion = _Expansion(environment)
    values = expansion.value(dict(raw), ())
    if expansion.unwritable:
        raise ConfigError(*expansion.unwritable)
    redact = Redactor(secrets(raw, values))
    return Document(dict(raw), values, (*problems, *expansion.problems), redact, expansion.used)


class _Expansion:
    """Replaces variables in a tree; it notes the variables it used, unknown ones, and texts that UTF-8 cannot hold."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        self._environment = environment
        self._done: dict[int, Any] = {}  # by their identity: YAML's anchors share mappings and lists
        self.used: dict[str, dict[str, str]] = {}
        self.problems: list[Problem] = []
        self.unwritable: list[Problem] = []

    def value(self, value: Any, path: tuple[str | int, ...]) -> Any:
        """Return a value at a path with its variables replaced."""
        if isinstance(value, str):
            return self._text(value, path)
        if not isinstance(value, dict | list):
            return value
        if id(value) in self._done:
            return self._done[id(value)]
        if isinstance(value, list):
            made: Any = [self.value(one, (*path, index)) for index, one in enumerate(value)]
        else:
            made = {}
            for key, one in value.items():
                within = (*path, str(key))
                self._require_text(str(key), within)
                made[key] = self.value(one, within)
        self._done[id(value)] = made
        return made

    def _text(self, text: str, path: tuple[str | int, ...]) -> Any:
        key = dotted(path)
        expanded = _VARIABLE.sub(lambda match: self._variable(match, key), text)
        self._require_text(expanded, path)
        alone = expanded != text and _VARIABLE.fullmatch(text)
        return typed(expanded) if alone and any(path[: len(free)] == free for free in _FREELY_TYPED) else expanded

    def _variable(self, match: re.Match[str], key: str) -> str:
        name = match.group(1)
        if not _NAME.match(name) or not match.group().endswith("}"):
            self.problems.append(Problem(key, f"{match.group()!r} is not a variable: write ${{NAME}}"))
        elif name not in self._environment:
            self.problems.append(Problem(key, f"the environment variable {name} is not set"))
        else:
            self.used.setdefault(key, {})[name] = self._environment[name]
            return self._environment[name]
        return match.group()

    def _require_text(self, text: str, path: tuple[str | int, ...]) -> None:
        if (why := why_no_text(text)) is not None:
            key = dotted(path)
            used = self.used.get(key, {}).items()
            name = next((f"the environment variable {name}: " for name, one in used if why_no_text(one)), "")
            self.unwritable.append(Problem(key or "configuration", f"{name}{why}"))
