"""The text of a configuration: YAML read safely, with and without the environment's values."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from streamkernel.connectors.os_reason import os_reason
from streamkernel.daemon.config.overrides import Override, override
from streamkernel.daemon.config.problems import ConfigError, dotted
from streamkernel.daemon.config.secrets import Redactor, secrets
from streamkernel.daemon.config.syntax import explained_syntax
from streamkernel.daemon.config.texts import why_no_text

__all__ = ["STANDARD_INPUT", "Document", "dump", "parse", "read"]

STANDARD_INPUT = "-"
"""The path of a configuration that is read from standard input."""

_VARIABLE = re.compile(r"\$\{([^}]*)\}?")
_LONGEST_WORD = 3
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")
# Values under these keys have no schema that would turn the text of a variable into a number, so YAML's own rules do.
_FREELY_TYPED = (("model",), ("models",), ("source", "args"), ("labels", "source", "args"))


@dataclass(frozen=True)
class Document:
    """The tree of a YAML file, with its ``${VAR}`` and with their values."""

    raw: dict[str, Any]  # every ``${VAR}`` as it stands: what may be logged, hashed and stored
    values: dict[str, Any]  # the variables replaced: what is built from
    problems: list[str] = field(default_factory=list)  # mistakes found so far, one line each
    redact: Redactor = field(default_factory=lambda: Redactor({}))  # takes the secrets out of a text
    # By the dotted path of a key, name and value of the environment variables it took.
    variables: Mapping[str, Mapping[str, str]] = field(default_factory=dict)

    def as_written(self, problem: str) -> str:
        """Return an error line with ``${VAR}`` in the place of the value that the variable has.

        Examples
        --------
        >>> document = parse("{mode: '${MODE}', seed: '${SEED}'}", environment={"MODE": "lern", "SEED": "1"})
        >>> document.as_written("mode: must be learn or predict, got 'lern' (1)")
        "mode: must be learn or predict, got '${MODE}' (1)"

        """
        key, colon, text = problem.partition(": ")
        for path, taken in self.variables.items():
            if not path.startswith(key):
                continue
            for name, value in taken.items():
                # What stands somewhere below the key may not be meant: no short value of it is.
                if value and (path == key or len(value) > _LONGEST_WORD):
                    found = re.escape(value) if len(value) > _LONGEST_WORD else rf"(?<!\w){re.escape(value)}(?!\w)"
                    text = re.sub(found, f"${{{name}}}", text)
        return key + colon + text


class _Loader(yaml.SafeLoader):
    """PyYAML's safe loader, with the floats of YAML 1.2: it takes ``1e-6`` for a string otherwise."""

    def construct_object(self, node: yaml.Node, deep: bool = False) -> Any:
        """Return what a node stands for; YAMLError where its value does not fit its tag, as in ``!!bool perhaps``."""
        try:
            return super().construct_object(node, deep)
        except (ArithmeticError, AttributeError, LookupError, TypeError) as error:
            tag = node.tag.replace("tag:yaml.org,2002:", "!!")
            raise yaml.constructor.ConstructorError(
                problem=f"a value does not fit its tag {tag}", problem_mark=node.start_mark
            ) from error


class _Dumper(yaml.SafeDumper):
    """Its counterpart: a text that the loader would take for a float is written in quotes."""


for _either in (_Loader, _Dumper):
    _either.add_implicit_resolver(
        "tag:yaml.org,2002:float",
        re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)[eE][-+]?[0-9]+\Z"),
        list("-+.0123456789"),
    )


def dump(raw: Mapping[str, Any]) -> str:
    """Return a tree as the text of a configuration, from which `parse` reads the same.

    Examples
    --------
    >>> dump({"source": {"path": "${HOME}/a.csv"}, "model": ["1e5", 1e-7]})
    "source:\\n  path: ${HOME}/a.csv\\nmodel:\\n- '1e5'\\n- 1.0e-07\\n"

    """
    return yaml.dump(dict(raw), Dumper=_Dumper, sort_keys=False)


def read(path: Path, environment: Mapping[str, str] = os.environ, overrides: Sequence[Override] = ()) -> Document:
    """Return the document of a YAML file, of standard input where the path is ``-``, with values put into it.

    Variables are looked up in the environment.

    Raises
    ------
    ConfigError
        Where the file cannot be read or is not YAML.

    """
    standard = str(path) == STANDARD_INPUT
    name = "standard input" if standard else str(path)
    try:
        text = (sys.stdin.buffer.read() if standard else path.read_bytes()).decode("utf-8-sig")
    except OSError as error:
        raise ConfigError([f"{name}: cannot be read: {os_reason(error)}"]) from None
    except UnicodeDecodeError as error:
        raise ConfigError([f"{name}: is not UTF-8 text (byte {error.start})"]) from None
    return parse(text, name, environment, overrides)


def parse(
    text: str,
    name: str = "configuration",
    environment: Mapping[str, str] = os.environ,
    overrides: Sequence[Override] = (),
) -> Document:
    """Return the document of a text, which errors call by a name; variables are looked up in the environment.

    Overrides are put into it before that, one after the other.

    Raises
    ------
    ConfigError
        Where it is not YAML, or no mapping, or where one of its texts is not to be had in UTF-8.

    Examples
    --------
    >>> document = parse("source: {path: '${HOME}/a.csv'}", environment={"HOME": "/root"})
    >>> document.raw["source"]["path"], document.values["source"]["path"]
    ('${HOME}/a.csv', '/root/a.csv')

    """
    try:
        raw, values, problems, taken = _load(text, environment, overrides)
    except yaml.MarkedYAMLError as error:
        raise ConfigError([f"{name}, {explained_syntax(text, error)}"]) from None
    except (yaml.YAMLError, ValueError) as error:
        raise ConfigError([f"{name}: cannot be read as YAML: {' '.join(str(error).split())}"]) from None
    except RecursionError:
        raise ConfigError([f"{name}: nested too deeply"]) from None
    if not isinstance(raw, dict):
        found = "nothing" if raw is None else f"a {type(raw).__name__}"
        raise ConfigError([f"{name}: must hold a mapping with the keys source and model, holds {found}"])
    return Document(raw, values, problems, Redactor(secrets(raw, values)), taken)


def _load(
    text: str, environment: Mapping[str, str], overrides: Sequence[Override] = ()
) -> tuple[Any, Any, list[str], dict[str, dict[str, str]]]:
    """Return the tree as it is written and as it is meant, the mistakes in it, and the variables taken by their key."""
    loader = _Loader(text)
    taken: dict[str, dict[str, str]] = {}
    problems: list[str] = []
    try:
        node = loader.get_single_node()
        if node is None:
            return None, None, [], {}
        node = override(node, overrides, _Loader)
        scalars = list(
            _walk(node, (), problems, {})
        )  # first: a tree that is built has the keys of `<<` in its mappings
        raw = loader.construct_document(node)
        for scalar, path in scalars:
            alone = _VARIABLE.fullmatch(scalar.value) is not None
            scalar.value = _expand(scalar.value, dotted(path), environment, taken, problems)
            if alone and any(path[: len(free)] == free for free in _FREELY_TYPED):
                scalar.tag = loader.resolve(yaml.ScalarNode, scalar.value, (True, False))  # type: ignore[no-untyped-call]
        if wrong := list(_without_utf8(node, taken)):
            raise ConfigError(wrong)
        return raw, loader.construct_document(node), problems, taken
    finally:
        loader.dispose()


def _expand(
    text: str, key: str, environment: Mapping[str, str], taken: dict[str, dict[str, str]], problems: list[str]
) -> str:
    """Replace each ``${VAR}`` in the value of a key, and note what was taken and what is no variable."""

    def replace(match: re.Match[str]) -> str:
        name = match.group(1)
        if not _NAME.match(name) or not match.group().endswith("}"):
            problems.append(f"{key}: {match.group()!r} is not a variable: write ${{NAME}}")
        elif name not in environment:
            problems.append(f"{key}: the environment variable {name} is not set")
        else:
            taken.setdefault(key, {})[name] = environment[name]
            return environment[name]
        return match.group()

    return _VARIABLE.sub(replace, text)


def _without_utf8(root: yaml.Node, taken: Mapping[str, Mapping[str, str]]) -> Iterator[str]:
    """Yield a line for each key and value that UTF-8 does not have, with the variable that brought it."""
    for path, text in _texts(root, (), set()):
        if (why := why_no_text(text)) is not None:
            key = dotted(path)
            names = [name for name, value in taken.get(key, {}).items() if why_no_text(value) is not None]
            yield ": ".join([key or "configuration", *(f"the environment variable {name}" for name in names[:1]), why])


def _texts(node: yaml.Node, path: tuple[str | int, ...], seen: set[int]) -> Iterator[tuple[tuple[str | int, ...], str]]:
    """Yield every key and scalar value with its path, what an anchor shares only once."""
    if id(node) in seen:
        return
    seen.add(id(node))
    if isinstance(node, yaml.ScalarNode):
        yield path, node.value
    elif isinstance(node, yaml.SequenceNode):
        for index, child in enumerate(node.value):
            yield from _texts(child, (*path, index), seen)
    elif isinstance(node, yaml.MappingNode):
        for key, child in node.value:
            within = (*path, str(key.value))
            yield from _texts(key, within, seen)
            yield from _texts(child, within, seen)


def _walk(
    node: yaml.Node, path: tuple[str | int, ...], doubles: list[str], done: dict[int, bool]
) -> Iterator[tuple[yaml.ScalarNode, tuple[str | int, ...]]]:
    """Yield every scalar value with its path, and note the keys that stand twice in one mapping."""
    if id(node) in done:  # an alias: its anchor was seen before, and its text must not be expanded a second time
        if not done[id(node)]:
            raise yaml.MarkedYAMLError(problem="an anchor that contains itself", problem_mark=node.start_mark)
        return
    done[id(node)] = False
    if isinstance(node, yaml.ScalarNode):
        yield node, path
    elif isinstance(node, yaml.SequenceNode):
        for index, child in enumerate(node.value):
            yield from _walk(child, (*path, index), doubles, done)
    elif isinstance(node, yaml.MappingNode):
        first: dict[str, int] = {}
        for key, child in node.value:
            word, line = str(key.value), key.start_mark.line + 1
            if word in first and word != "<<":
                doubles.append(f"{dotted((*path, word))}: given twice, in line {first[word]} and in line {line}")
            first.setdefault(word, line)
            yield from _walk(child, (*path, word), doubles, done)
    done[id(node)] = True
