"""YAML as text: the safe loader and dumper of configurations, and what to check if a text is not YAML."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

import yaml

from streamkernel.daemon.config.problems import Problem, dotted

__all__ = ["UNREADABLE", "dump", "load", "syntax_problem", "typed"]

UNREADABLE = (yaml.YAMLError, ValueError, RecursionError)
"""What `load` raises if a text is not YAML."""

_KEY = re.compile(r"(?P<indent>[\s-]*)(?P<name>\w+)\s*:(?P<value>\s+[^\s#])?")
_INDENTATION = "check the indentation of {keys}, and put a text that holds ': ' in quotes"
_BRACKET = "close the bracket{opened}, and put a comma between its values"
# By words of PyYAML.
_ADVICE = {
    "escape": "put a text with backslashes in single quotes",
    "quoted scalar": "close the quote{opened}",
    "flow sequence": _BRACKET,
    "flow mapping": _BRACKET,
    "flow node": "close each bracket, and put a value between two commas",
    "'\\t'": "indent with spaces, not with a tab",
    "cannot start any token": "put this text in quotes",
    "could not find expected ':'": "write a key as 'key: value', with a space after the colon",
    "mapping values are not allowed": _INDENTATION,
    "expected <block end>": _INDENTATION,
    "<document start>": _INDENTATION,
}


class _Loader(yaml.SafeLoader):
    """PyYAML's safe loader, with the floats of YAML 1.2, such as ``1e-6``."""

    def construct_object(self, node: yaml.Node, deep: bool = False) -> Any:
        """Return the value of a node; `yaml.YAMLError` if it does not fit its tag, as in ``!!bool perhaps``."""
        try:
            return super().construct_object(node, deep)
        except (ArithmeticError, AttributeError, LookupError, TypeError) as error:
            tag = node.tag.replace("tag:yaml.org,2002:", "!!")
            raise yaml.constructor.ConstructorError(
                problem=f"a value does not fit its tag {tag}", problem_mark=node.start_mark
            ) from error


class _Dumper(yaml.SafeDumper):
    """The counterpart of the loader: it quotes a text that the loader would take for a float."""


for _either in (_Loader, _Dumper):
    _either.add_implicit_resolver(
        "tag:yaml.org,2002:float",
        re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)[eE][-+]?[0-9]+\Z"),
        list("-+.0123456789"),
    )


def load(text: str) -> tuple[Any, list[Problem]]:
    """Return the value of a YAML text, and a problem for each key that is given twice."""
    loader = _Loader(text)
    try:
        node = loader.get_single_node()
        if node is None:
            return None, []
        doubles = list(_doubles(node, (), set()))  # first: the loader puts the keys of << into the nodes
        return loader.construct_document(node), doubles
    finally:
        loader.dispose()


def _doubles(node: yaml.Node, path: tuple[str | int, ...], seen: set[int]) -> Iterator[Problem]:
    if id(node) in seen:
        return
    seen.add(id(node))
    if isinstance(node, yaml.SequenceNode):
        for index, child in enumerate(node.value):
            yield from _doubles(child, (*path, index), seen)
    elif isinstance(node, yaml.MappingNode):
        first: dict[str, int] = {}
        for key, child in node.value:
            word, line = str(key.value), key.start_mark.line + 1
            if word in first and word != "<<":
                why = f"given twice, in line {first[word]} and in line {line}"
                yield Problem(dotted((*path, word)), why)
            first.setdefault(word, line)
            yield from _doubles(child, (*path, word), seen)


def typed(text: str) -> Any:
    """Return a text as YAML reads it as a single value without quotes, for example as a number.

    Examples
    --------
    >>> typed("1e-5"), typed("null"), typed("{a: b}")
    (1e-05, None, '{a: b}')

    """
    loader = _Loader("")
    tag = loader.resolve(yaml.ScalarNode, text, (True, False))  # type: ignore[no-untyped-call]
    try:
        return loader.construct_object(yaml.ScalarNode(tag, text))
    except (yaml.YAMLError, ValueError):  # such as 2026-13-01, which has the form of a date
        return text


def dump(raw: Mapping[str, Any]) -> str:
    """Return a tree as the text of a configuration.

    Examples
    --------
    >>> dump({"source": {"path": "${HOME}/a.csv"}, "model": ["1e5", 1e-7]})
    "source:\\n  path: ${HOME}/a.csv\\nmodel:\\n- '1e5'\\n- 1.0e-07\\n"

    """
    return yaml.dump(dict(raw), Dumper=_Dumper, sort_keys=False)


def syntax_problem(text: str, error: Exception) -> Problem:
    """Return where a text is not YAML, what to check there, and what the parser reports.

    Examples
    --------
    >>> try:
    ...     _ = load("a: b: c")
    ... except UNREADABLE as error:
    ...     print(str(syntax_problem("a: b: c", error)).replace(": ", ":\\n  ", 2))
    line 1, column 5:
      cannot be read as YAML:
      check the indentation of 'a', and put a text that holds ': ' in quotes (mapping values are not allowed here)

    """
    if isinstance(error, RecursionError):
        return Problem("", "nested too deeply, or an anchor contains itself")
    if not isinstance(error, yaml.MarkedYAMLError):
        return Problem("", f"cannot be read as YAML: {' '.join(str(error).split())}")
    mark = error.problem_mark or error.context_mark
    reported = error.problem or error.context or ""
    advice = "" if mark is None else _advice(text, mark.index, reported, error)
    place = "" if mark is None else f"line {mark.line + 1}, column {mark.column + 1}"
    return Problem(place, f"cannot be read as YAML: {f'{advice} ({reported})' if advice else reported}")


def _advice(text: str, index: int, reported: str, error: yaml.MarkedYAMLError) -> str:
    """Return what to check, by the words of the parser; nothing if they say enough."""
    if text[index - 1 : index + 1] == "${":  # YAML takes its brace for a mapping inside {...}
        return 'inside {...} write "${VAR}" with its quotes'
    words = f"{reported} {error.context}"
    advice = next((advice for sign, advice in _ADVICE.items() if sign in words), "")
    opened = "" if error.context_mark is None else f" that line {error.context_mark.line + 1} opens"
    return advice.format(opened=opened, keys=_keys_around(text, index))


def _keys_around(text: str, index: int) -> str:
    """Return the key in the line of a character, and the one above it if that is not indented enough."""
    # PyYAML's numbers of lines count other line ends than `str.splitlines`.
    start = text.rfind("\n", 0, index) + 1
    key = _KEY.match(text[start:].partition("\n")[0])
    above = _KEY.match(text[:start].rstrip().rpartition("\n")[2])
    if key and above and above["value"] and len(above["indent"]) < len(key["indent"]):
        return f"{above['name']!r} and {key['name']!r}"
    return repr(key["name"]) if key else "this line"
