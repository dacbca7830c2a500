"""Overrides of a configuration from the command line: ``--set source.path=other.csv`` puts a value into the tree."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, NamedTuple

from streamkernel.daemon.config.problems import ConfigError, Problem, dotted
from streamkernel.daemon.config.yaml_text import UNREADABLE, load, syntax_problem

__all__ = ["Override", "override", "parse_override"]

_PART = re.compile(r"(?P<name>[^.\[\]]+)|\[(?P<index>\d+)\]")


class Override(NamedTuple):
    """A value for one key.

    Attributes
    ----------
    path
        The parts of the key: names, and numbers of list entries.
    text
        The value, as YAML.

    """

    path: tuple[str | int, ...]
    text: str


def parse_override(argument: str) -> Override:
    """Parse ``key=value``, with the key in dotted notation; `ConfigError` if it has another form.

    Examples
    --------
    >>> parse_override("model[0].seed=3")
    Override(path=('model', 0, 'seed'), text='3')

    """
    key, equals, text = argument.partition("=")
    path: list[str | int] = []
    rest = key
    while found := _PART.match(rest):
        path.append(found["name"] if found["index"] is None else int(found["index"]))
        rest = rest[found.end() :].removeprefix(".")
    if not equals or rest or not path or isinstance(path[0], int):
        got = key + equals  # without the value, which may be a secret
        why = f"must be key=value with a key like source.path or model[0].seed, got {got!r}"
        raise ConfigError(Problem("--set", why))
    return Override(tuple(path), text)


def override(tree: dict[str, Any], overrides: Sequence[Override]) -> dict[str, Any]:
    """Return a copy of a tree with each value in its place; the last one for a key counts.

    Other places that share an anchor with an overridden one keep their values.

    Raises
    ------
    ConfigError
        If a value is not YAML, or a key leads into something that has no keys.

    """
    for one in overrides:
        try:
            # Standard input; YAML would read a list with nothing in it.
            value = "-" if one.text == "-" else load(one.text)[0]
        except UNREADABLE as error:
            raise _refused(one.path, str(syntax_problem(one.text, error))) from None
        tree = _put(tree, one.path, 0, value)
    return tree


def _put(node: Any, path: tuple[str | int, ...], depth: int, value: Any) -> Any:
    if depth == len(path):
        return value
    part, where = path[depth], dotted(path[:depth])
    if isinstance(part, int):
        if not isinstance(node, list):
            raise _refused(path, f"{where} is not a list")
        if part >= len(node):
            raise _refused(path, f"{where} has {len(node)} entries, the first is {where}[0]")
        entry = node[part]
        if isinstance(entry, str) and depth + 1 < len(path) and "." in entry:
            entry = {entry: None}  # a step without arguments is the name of its class alone
        return [*node[:part], _put(entry, path, depth + 1, value), *node[part + 1 :]]
    if not isinstance(node, dict | None):
        raise _refused(path, f"{where} is not a mapping")
    node = node or {}
    name = str(next(iter(node))) if len(node) == 1 else ""
    if path[0] in ("model", "models") and depth > 0 and "." in name and part != name:
        # The name of a class is no part of the key: model[0].seed.
        end = depth + name.count(".") + 1
        if path[depth:end] == tuple(name.split(".")):
            right = dotted((*path[:depth], *path[end:]))
            raise _refused(path, f"leave out {name}, the name of the class: write {right}")
        return {name: _put(node[name], path, depth, value)}
    return {**node, part: _put(node.get(part), path, depth + 1, value)}


def _refused(path: tuple[str | int, ...], why: str) -> ConfigError:
    return ConfigError(Problem(dotted(path), f"--set: {why}"))
