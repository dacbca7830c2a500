"""Validation by the schema: pydantic's errors as problems with the path of the key, what is wrong and a hint."""

from __future__ import annotations

import types
from collections.abc import Sequence
from typing import Any, get_args

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from streamkernel.connectors.kafka.base.options import OUTPUT_RESERVED, RESERVED
from streamkernel.connectors.names import hint
from streamkernel.daemon.config.document import Document
from streamkernel.daemon.config.problems import Problem, dotted, shown
from streamkernel.daemon.config.schema import Config
from streamkernel.daemon.config.secrets import is_secret

__all__ = ["validate"]

# The sections that have several kinds.
_UNIONS = (("source",), ("labels", "source"), ("warm_start", "source"), ("predictions",), ("dead_letters",))
_COMPARISONS = {
    "greater_than": ("gt", ">"),
    "greater_than_equal": ("ge", ">="),
    "less_than": ("lt", "<"),
    "less_than_equal": ("le", "<="),
}
_KINDS = {
    "int": "must be a whole number",
    "float": "must be a number",
    "finite": "must be a finite number",
    "string": "must be text",
    "bool": "must be true or false",
    "list": "must be a list",
    "dict": "must be a mapping",
    "model": "must be a mapping",
}


def validate(document: Document) -> tuple[Config | None, list[Problem]]:
    """Return the configuration of a document, None if a section is wrong, and a problem for each mistake."""
    config, problems = None, []
    try:
        config = Config.model_validate(document.values)
    except ValidationError as error:
        problems = [_problem(details, document.raw) for details in error.errors(include_url=False)]
    if document.values.get("model") is None and document.values.get("models") is None:
        problems.append(Problem("model", "required"))
    return config, problems


def _problem(details: ErrorDetails, raw: dict[str, Any]) -> Problem:
    path = [part for part in details["loc"] if part != "[key]"]
    tag = None
    for union in _UNIONS:
        if len(path) > len(union) and tuple(path[: len(union)]) == union:
            tag = str(path.pop(len(union)))  # pydantic puts the chosen kind into the path
    kind = details["type"]
    if kind == "invalid_key":
        return Problem(dotted(path[:-1]) or "configuration", f"a key must be text, got {shown(path[-1])}")
    if not path:  # a key that is no text that can be written
        return Problem("configuration", details["msg"])
    if kind in ("union_tag_not_found", "union_tag_invalid"):
        return Problem(f"{dotted(path)}.kind", _why_no_kind(path, details, raw))
    return Problem(dotted(path), _why(path, tag, details, raw))


def _why_no_kind(path: Sequence[str | int], details: ErrorDetails, raw: dict[str, Any]) -> str:
    if details["type"] == "union_tag_not_found":
        return f"required, one of {', '.join(tag for one in _sections_at(path) for tag in _tags(one))}"
    word = _value_at(raw, [*path, "kind"])
    if path == ["dead_letters"] and word == "parquet":
        return "parquet is only for predictions: use jsonl, which you can fix and replay"
    return _choice(details["ctx"]["expected_tags"], word)


def _why(path: Sequence[str | int], tag: str | None, details: ErrorDetails, raw: dict[str, Any]) -> str:
    kind, context, value = details["type"], details.get("ctx", {}), _value_at(raw, path)
    if kind == "missing":
        return "required"
    if kind == "extra_forbidden":
        reserved = {**RESERVED, **OUTPUT_RESERVED} if path[0] in ("predictions", "dead_letters") else RESERVED
        if path[-2:-1] == ["options"] and path[-1] in reserved:
            return f"cannot be set: {reserved[str(path[-1])]}"
        return f"unknown key{hint(str(path[-1]), _keys_at(path[:-1], tag))}"
    if kind == "literal_error":
        return _choice(context["expected"], value)
    if kind == "value_error":
        return str(context["error"])
    if kind in ("string_too_short", "too_short"):
        return "must not be empty"
    got = "" if any(map(is_secret, path)) else f", got {shown(value)}"
    if kind in _COMPARISONS:
        limit, sign = _COMPARISONS[kind]
        bound = context[limit]
        return f"must be {sign} {bound:{'.0f' if bound == int(bound) else 'g'}}{got}"
    return f"{_KINDS.get(kind.split('_')[0], details['msg'])}{got}"


def _choice(expected: str, value: object) -> str:
    names = expected.replace("'", "").replace(" or ", ", ")
    return f"must be one of {names}, got {shown(value)}{hint(str(value), names.split(', '))}"


def _value_at(raw: Any, path: Sequence[str | int]) -> Any:
    """Return the value in the file at a path, with its variables: an error must not show their values."""
    for part in path:
        try:
            raw = raw[part]
        except (KeyError, IndexError, TypeError):
            return None
    return raw


def _keys_at(path: Sequence[str | int], tag: str | None) -> list[str]:
    """List the keys of the section at a path, of this kind if there are several."""
    fitting = [one for one in _sections_at(path) if "kind" not in one.model_fields or tag in _tags(one)]
    return list(fitting[0].model_fields) if fitting else []


def _sections_at(path: Sequence[str | int]) -> list[type[BaseModel]]:
    """List the sections that are allowed at a path, one for each kind."""
    found: list[type[BaseModel]] = [Config]
    for part in path:
        fields = [one.model_fields[str(part)] for one in found if part in one.model_fields]
        found = [section for field in fields for section in _sections(field.annotation)]
    return found


def _tags(section: type[BaseModel]) -> tuple[Any, ...]:
    return get_args(section.model_fields["kind"].annotation)


def _sections(annotation: Any) -> list[type[BaseModel]]:
    if isinstance(annotation, type) and not isinstance(annotation, types.GenericAlias):
        return [annotation] if issubclass(annotation, BaseModel) else []
    return [section for part in get_args(annotation) for section in _sections(part)]
