"""Schemas with all that they refer to, as a registry has them, within bounds: they are not ours to trust."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import orjson

from streamkernel.connectors.registry.client import Reference, RegisteredSchema, RegistryClient

__all__ = ["SchemaSet", "UnusableSchemaError", "fetch", "parse_json"]

MOST_REFERENCES, DEEPEST_REFERENCE = 200, 20
MOST_CHARACTERS = 2**20
"""How long a schema may be, with all that it refers to."""

DEEPEST = 200
"""How deeply the JSON of a schema may be nested: an Avro record within a record takes three levels."""


class UnusableSchemaError(Exception):
    """A schema cannot be used; the message is a phrase that says why."""


class SchemaSet(NamedTuple):
    """A schema and what it refers to, by the name that it has there: each comes after those it needs itself."""

    main: RegisteredSchema
    references: dict[str, RegisteredSchema]

    @property
    def size(self) -> int:
        """The characters of all texts."""
        return len(self.main.text) + sum(len(one.text) for one in self.references.values())


def fetch(client: RegistryClient, main: RegisteredSchema, serialized: bool = False) -> SchemaSet:
    """Ask a registry for all that a schema refers to.

    Raises
    ------
    UnusableSchemaError
        Where that is too much, or goes round in a circle.
    RegistryOutage, UnknownSchemaError, ConnectorError
        As the client.

    """
    found: dict[str, RegisteredSchema] = {}
    total = len(main.text)
    versions: dict[tuple[str, int], RegisteredSchema] = {}

    def visit(schema: RegisteredSchema, path: tuple[Reference, ...]) -> None:
        nonlocal total
        if total > MOST_CHARACTERS:
            raise UnusableSchemaError(f"it is longer than {MOST_CHARACTERS:,} characters, with what it refers to")
        for reference in schema.references:
            if reference in path or len(path) >= DEEPEST_REFERENCE:
                raise UnusableSchemaError("its references go round in a circle, or too deep")
            if reference.name in found:
                continue
            if len(versions) >= MOST_REFERENCES:
                raise UnusableSchemaError(f"it refers to more than {MOST_REFERENCES} schemas")
            place = (reference.subject, reference.version)
            if place not in versions:
                versions[place] = client.version(*place, serialized)
                total += len(versions[place].text)
            visit(versions[place], (*path, reference))
            found[reference.name] = versions[place]

    visit(main, ())
    return SchemaSet(main, found)


def parse_json(text: str) -> Any:
    """Return the JSON of a schema; raises `UnusableSchemaError` where it is none, or nested too deeply.

    Examples
    --------
    >>> parse_json('{"type": "string"}')
    {'type': 'string'}

    """
    try:
        tree = orjson.loads(text)
    except orjson.JSONDecodeError:
        # Avro's own way to write a primitive type at the top, which registries hand on as it was given.
        if text.strip().isalpha():
            return text.strip()
        raise UnusableSchemaError("it is not JSON") from None
    if tree is None:
        return "null"
    level: list[Any] = [tree]
    for _ in range(DEEPEST):
        level = [one for each in level for one in _inside(each)]
        if not level:
            return tree
    raise UnusableSchemaError(f"it is nested more than {DEEPEST} levels deep")


def _inside(tree: Any) -> Iterable[Any]:
    if isinstance(tree, dict):
        return tree.values()
    return tree if isinstance(tree, list) else ()
