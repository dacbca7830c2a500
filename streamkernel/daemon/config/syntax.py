"""What to check where a configuration cannot be read as YAML."""

from __future__ import annotations

import re

import yaml

__all__ = ["explained_syntax"]

_KEY = re.compile(r"(?P<indent>[\s-]*)(?P<name>\w+)\s*:(?P<value>\s+[^\s#])?")


def explained_syntax(text: str, error: yaml.MarkedYAMLError) -> str:
    """Return where a text is not YAML, what to check there, and what the parser says.

    Examples
    --------
    >>> try:
    ...     _ = yaml.safe_load("a: b: c")
    ... except yaml.MarkedYAMLError as error:
    ...     print(explained_syntax("a: b: c", error).replace(": ", ":\\n  ", 2))
    line 1, column 5:
      cannot be read as YAML:
      check the indentation of 'a', and put a text that holds ': ' in quotes (mapping values are not allowed here)

    """
    mark = error.problem_mark or error.context_mark
    said = error.problem or error.context or ""
    where = f"line {mark.line + 1}, column {mark.column + 1}: " if mark is not None else ""
    # The one trap of our own making: YAML takes the brace of ${VAR} for a mapping inside {...}.
    line, before = ("", "") if mark is None else _lines_at(text, mark.index)
    if mark is not None and text[mark.index - 1 : mark.index + 1] == "${":
        advice = 'inside {...} write "${VAR}" with its quotes'
    else:
        advice = _advice(said, error.context or "", error.context_mark, line, before)
    return f"{where}cannot be read as YAML: {advice} ({said})" if advice else f"{where}cannot be read as YAML: {said}"


def _advice(said: str, context: str, opened: yaml.Mark | None, line: str, before: str) -> str:
    """Return what to check, by what the parser says; nothing where that tells enough."""
    from_line = "" if opened is None else f" that line {opened.line + 1} opens"
    if "escape" in said:
        return "put a text with backslashes in single quotes"
    if "quoted scalar" in context:
        return f"close the quote{from_line}"
    if "flow sequence" in context or "flow mapping" in context:
        return f"close the bracket{from_line}, and put a comma between its values"
    if "flow node" in context:
        return "close each bracket, and put a value between two commas"
    if "'\\t'" in said:
        return "indent with spaces, not with a tab"
    if "cannot start any token" in said:
        return "put this text in quotes"
    if "could not find expected ':'" in said:
        return "write a key as 'key: value', with a space after the colon"
    if "mapping values are not allowed" in said or "expected <block end>" in said or "<document start>" in said:
        key, above = _KEY.match(line), _KEY.match(before)
        what = "this line" if key is None else repr(key["name"])
        # A line may be deeper than one with a value because that one is not as deep as it should be.
        if key and above and above["value"] and len(above["indent"]) < len(key["indent"]):
            what = f"{above['name']!r} and {what}"
        return f"check the indentation of {what}, and put a text that holds ': ' in quotes"
    return ""


def _lines_at(text: str, index: int) -> tuple[str, str]:
    """Return the line of a character, and the last one before it that is not blank.

    PyYAML's numbers of lines count other ends of lines than `str.splitlines`.
    """
    start = text.rfind("\n", 0, index) + 1
    return text[start:].partition("\n")[0], text[:start].rstrip().rpartition("\n")[2]
