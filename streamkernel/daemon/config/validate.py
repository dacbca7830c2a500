"""Validation by the schema: pydantic's errors as lines with the path of the key, what is wrong and a hint."""

from __future__ import annotations

import types
from collections.abc import Sequence
from typing import Any, get_args

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from streamkernel.connectors.kafka.base.options import OUTPUT_RESERVED, RESERVED
from streamkernel.connectors.names import hint
from streamkernel.daemon.config.conflicts import conflicts
from streamkernel.daemon.config.document import Document
from streamkernel.daemon.config.predicting import with_mode_defaults
from streamkernel.daemon.config.problems import dotted, shown
from streamkernel.daemon.config.schema import Config
from streamkernel.daemon.config.secrets import is_secret
from streamkernel.daemon.config.transactions import with_transactional_ids

__all__ = ["validate"]

# Where a section may be of several kinds.
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


def validate(document: Document) -> tuple[Config | None, list[str]]:
    """Return the configuration a document holds, None where a section is wrong, and one line for each mistake."""
    try:
        config = Config.model_validate(document.values)
    except ValidationError as error:
        lines = [_line(details, document.raw) for details in error.errors(include_url=False)]
        return None, [*lines, *_without_model(document)]
    config = with_transactional_ids(with_mode_defaults(config))
    return config, [*_without_model(document), *conflicts(config)]


def _without_model(document: Document) -> list[str]:
    neither = document.values.get("model") is None and document.values.get("models") is None
    return ["model: required"] if neither else []


def _line(details: ErrorDetails, raw: dict[str, Any]) -> str:
    path = [part for part in details["loc"] if part != "[key]"]
    tag = None
    for union in _UNIONS:
        if len(path) > len(union) and tuple(path[: len(union)]) == union:
            tag = str(path.pop(len(union)))  # pydantic puts the chosen kind into the path
    kind, context = details["type"], details.get("ctx", {})
    name = dotted(path)
    if kind == "missing":
        return f"{name}: required"
    if kind == "extra_forbidden":
        reserved = {**RESERVED, **OUTPUT_RESERVED} if path[0] in ("predictions", "dead_letters") else RESERVED
        if path[-2:-1] == ["options"] and path[-1] in reserved:
            return f"{name}: cannot be set: {reserved[str(path[-1])]}"
        return f"{name}: unknown key{hint(str(path[-1]), _keys_at(path[:-1], tag))}"
    if kind == "union_tag_not_found":
        return f"{name}.kind: required, one of {', '.join(tag for one in _sections_at(path) for tag in _tags(one))}"
    if kind == "union_tag_invalid":
        word = _value_at(raw, [*path, "kind"])
        if path == ["dead_letters"] and word == "parquet":
            return f"{name}.kind: parquet is only for predictions: use jsonl, which you can fix and replay"
        return f"{name}.kind: {_choice(str(context['expected_tags']), str(word), shown(word))}"
    if kind == "invalid_key":
        return f"{dotted(path[:-1]) or 'configuration'}: a key must be text, got {shown(path[-1])}"
    if not path:  # nothing in it can be named, as where a key is no text that can be written
        return f"configuration: {details['msg']}"
    value = _value_at(raw, path)
    got = "" if any(map(is_secret, path)) else f", got {shown(value)}"
    if kind == "literal_error":
        return f"{name}: {_choice(str(context['expected']), str(value), shown(value))}"
    if kind in _COMPARISONS:
        limit, sign = _COMPARISONS[kind]
        bound = context[limit]
        return f"{name}: must be {sign} {bound:{'.0f' if bound == int(bound) else 'g'}}{got}"
    if kind == "value_error":
        return f"{name}: {context['error']!s}"
    if kind in ("string_too_short", "too_short"):
        return f"{name}: must not be empty"
    return f"{name}: {_KINDS.get(kind.split('_')[0], details['msg'])}{got}"


def _listed(expected: str) -> str:
    return expected.replace("'", "").replace(" or ", ", ")


def _choice(expected: str, word: str, got: str) -> str:
    names = _listed(expected)
    return f"must be one of {names}, got {got}{hint(word, names.split(', '))}"


def _value_at(raw: Any, path: Sequence[str | int]) -> Any:
    """Find what the file says at a path, variables unreplaced: an error line must not show what they hold."""
    for part in path:
        try:
            raw = raw[part]
        except (KeyError, IndexError, TypeError):
            return None
    return raw


def _keys_at(path: Sequence[str | int], tag: str | None) -> list[str]:
    """List the keys that the section at a path may have, which is of this kind where there are several."""
    fitting = [one for one in _sections_at(path) if "kind" not in one.model_fields or tag in _tags(one)]
    return list(fitting[0].model_fields) if fitting else []


def _sections_at(path: Sequence[str | int]) -> list[type[BaseModel]]:
    """List the sections that may stand at a path: several where it may be of several kinds."""
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
