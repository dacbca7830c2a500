"""Overrides of a configuration from the command line: ``--set source.path=other.csv`` puts a value into the tree."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

import yaml

from streamkernel.daemon.config.problems import ConfigError, dotted
from streamkernel.daemon.config.syntax import explained_syntax

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
    """Parse ``key=value``, with the key in dotted notation.

    Raises
    ------
    ConfigError
        Where it is not of this form.

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
        raise ConfigError([f"--set: must be key=value with a key like source.path or model[0].seed, got {got!r}"])
    return Override(tuple(path), text)


def override(root: yaml.Node, overrides: Sequence[Override], loader: type[yaml.SafeLoader]) -> yaml.Node:
    """Return a tree with each value in its place, a later one in that of an earlier one.

    The nodes on the way there are copied: what an anchor shares with other places stays as it is there.

    Raises
    ------
    ConfigError
        Where a value is not YAML, or a key leads into something that has no keys.

    """
    for one in overrides:
        try:
            value = yaml.compose(one.text, loader)
            yaml.load(one.text, loader)  # nothing of it is kept; what cannot be built is told as what it is
        except yaml.MarkedYAMLError as error:
            raise ConfigError([f"{dotted(one.path)}: --set: {explained_syntax(one.text, error)}"]) from None
        except (yaml.YAMLError, ValueError) as error:
            said = " ".join(str(error).split())
            raise ConfigError([f"{dotted(one.path)}: --set: cannot be read as YAML: {said}"]) from None
        except RecursionError:
            raise ConfigError([f"{dotted(one.path)}: --set: nested too deeply"]) from None
        root = _put(root, one.path, 0, _empty() if value is None else value)
    return root


def _put(node: yaml.Node, path: tuple[str | int, ...], depth: int, value: yaml.Node) -> yaml.Node:
    if depth == len(path):
        return value
    part = path[depth]
    if isinstance(part, int):
        return _put_entry(node, path, depth, part, value)
    if _is_null(node):
        node = yaml.MappingNode("tag:yaml.org,2002:map", [], node.start_mark, node.end_mark)
    if not isinstance(node, yaml.MappingNode):
        raise ConfigError([f"{dotted(path)}: --set: {dotted(path[:depth])} is not a mapping"])
    pairs = list(node.value)
    names = [str(key.value) for key, _ in pairs]
    made = path[0] == "model" and depth > 0 and len(names) == 1 and "." in names[0]
    if made and path[depth : (end := depth + names[0].count(".") + 1)] == tuple(names[0].split(".")):
        right = dotted((*path[:depth], *path[end:]))
        raise ConfigError([f"{dotted(path)}: --set: leave out {names[0]}, the name of the class: write {right}"])
    if made and part != names[0]:  # model[0].seed: the name of the class is no part of the key
        pairs[0] = (pairs[0][0], _put(pairs[0][1], path, depth, value))
    elif part in names:
        place = names.index(part)
        pairs[place] = (pairs[place][0], _put(pairs[place][1], path, depth + 1, value))
    else:
        key = yaml.ScalarNode("tag:yaml.org,2002:str", part, node.start_mark, node.end_mark)
        pairs.append((key, _put(_empty(), path, depth + 1, value)))
    return yaml.MappingNode(node.tag, pairs, node.start_mark, node.end_mark)


def _put_entry(
    node: yaml.Node, path: tuple[str | int, ...], depth: int, index: int, value: yaml.Node
) -> yaml.SequenceNode:
    where = dotted(path[:depth])
    if not isinstance(node, yaml.SequenceNode):
        raise ConfigError([f"{dotted(path)}: --set: {where} is not a list"])
    entries = list(node.value)
    if index >= len(entries):
        raise ConfigError([f"{dotted(path)}: --set: {where} has {len(entries)} entries, the first is {where}[0]"])
    entry = entries[index]
    if isinstance(entry, yaml.ScalarNode) and depth + 1 < len(path) and "." in entry.value:
        # A step without arguments is the name of its class alone.
        entry = yaml.MappingNode("tag:yaml.org,2002:map", [(entry, _empty())], entry.start_mark, entry.end_mark)
    entries[index] = _put(entry, path, depth + 1, value)
    return yaml.SequenceNode(node.tag, entries, node.start_mark, node.end_mark)


def _empty() -> yaml.ScalarNode:
    mark = yaml.Mark("--set", 0, 0, 0, None, 0)
    return yaml.ScalarNode("tag:yaml.org,2002:null", "", mark, mark)


def _is_null(node: yaml.Node) -> bool:
    return isinstance(node, yaml.ScalarNode) and node.tag == "tag:yaml.org,2002:null"
