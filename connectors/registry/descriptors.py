"""Protobuf: message classes made at run time of descriptors, from a registry or from a file; nothing is generated."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

from streamkernel.connectors.os_reason import os_reason
from streamkernel.connectors.ports import ConnectorError, SettingError
from streamkernel.connectors.registry.schemas import SchemaSet, UnusableSchemaError

__all__ = ["FileSet", "Indexes", "descriptor_file", "import_protobuf", "registry_files"]

Indexes: TypeAlias = tuple[int, ...]
"""Which message of a file: its number there, then those of the messages nested in one another."""

_MOST_FILE_BYTES = 2**24
_MOST_MESSAGES = 10_000
_WELL_KNOWN = ("any", "descriptor", "duration", "empty", "field_mask", "struct", "timestamp", "wrappers")
# What the registry of Confluent knows by default: options of it say nothing here, decimals do.
_CONFLUENT_OPTIONS = "confluent/meta.proto"
_CONFLUENT_DECIMAL = "confluent/type/decimal.proto"


def import_protobuf() -> Any:
    """Return the package google.protobuf with what is used of it; raises `ConnectorError` where it is not installed."""
    try:
        import google.protobuf
        import google.protobuf.descriptor_pb2
        import google.protobuf.descriptor_pool
        import google.protobuf.json_format
        import google.protobuf.message
        import google.protobuf.message_factory
    except ImportError:
        raise ConnectorError("value_format protobuf needs protobuf: pip install 'streamkernel[registry]'") from None
    return google.protobuf


class FileSet:
    """The messages of one Protobuf file, with those it imports.

    Parameters
    ----------
    files
        Descriptors of files, in any order.
    main
        The name of the one whose messages are meant.

    Raises
    ------
    UnusableSchemaError
        Where they are none.

    """

    def __init__(self, files: Iterable[Any], main: str) -> None:
        protobuf = import_protobuf()
        self._pool = protobuf.descriptor_pool.DescriptorPool()
        self._factory = protobuf.message_factory
        self._added: set[str] = set()
        self._files = {file.name: file for file in files}
        try:
            self._add(main, ())
        except UnusableSchemaError:
            raise
        except Exception as error:  # of whatever kind: the schema is not ours
            text = " ".join(str(error).split())[:200]
            raise UnusableSchemaError(f"it is not a Protobuf schema ({type(error).__name__}: {text})") from None
        self._paths = _paths(self._files[main])

    def _add(self, name: str, path: tuple[str, ...]) -> None:
        if name in self._added:
            return
        if name in path:
            raise UnusableSchemaError(f"its imports go round in a circle, at {name[:100]}")
        file = self._files.get(name) or _built_in(name)
        if file is None:
            raise UnusableSchemaError(
                f"it imports {name[:100]}, which is missing: name a file of protoc --include_imports "
                "--descriptor_set_out as descriptor_set"
            )
        self._files[name] = file
        if _CONFLUENT_OPTIONS in file.dependency and _CONFLUENT_OPTIONS not in self._files:
            _forget_import(file, _CONFLUENT_OPTIONS)
        for other in file.dependency:
            self._add(other, (*path, name))
        self._pool.AddSerializedFile(file.SerializeToString())
        self._added.add(name)

    def name(self, indexes: Indexes) -> str | None:
        """Return the full name of a message of the main file; None where there is none."""
        return self._paths.get(indexes)

    def indexes(self, name: str | None) -> Indexes:
        """Return which message of the main file has a full name; its first message for None.

        Raises
        ------
        UnusableSchemaError
            Where there is none.

        """
        for indexes, known in self._paths.items():
            if name is None or known == name:
                return indexes
        what = "no message" if name is None else f"no message {name[:100]}"
        raise UnusableSchemaError(f"it has {what}, only {', '.join(list(self._paths.values())[:10]) or 'others'}")

    def message_class(self, name: str) -> Any:
        """Return the class of the messages of a full name."""
        return self._factory.GetMessageClass(self.descriptor(name))

    def descriptor(self, name: str) -> Any:
        """Return the descriptor of the messages of a full name."""
        return self._pool.FindMessageTypeByName(name)


def registry_files(schemas: SchemaSet) -> FileSet:
    """Return the files of a schema that a registry has given in the form ``serialized``."""
    # The main one last, so that no reference can take its name.
    files = []
    for name, one in [*schemas.references.items(), ("the schema", schemas.main)]:
        files.append(_parsed(one.text, name))
        files[-1].name = name
    return FileSet(files, name)


def descriptor_file(path: str, message: str) -> FileSet:
    """Return the files of a descriptor set that holds a message; raises `ValueError`, naming the key, otherwise."""
    protobuf = import_protobuf()
    files = protobuf.descriptor_pb2.FileDescriptorSet()
    try:
        with Path(path).open("rb") as opened:
            data = opened.read(_MOST_FILE_BYTES + 1)
        if len(data) > _MOST_FILE_BYTES:
            raise SettingError("schema_registry.descriptor_set", f"{path}: is larger than {_MOST_FILE_BYTES:,} bytes")
        files.ParseFromString(data)
    except OSError as error:
        raise SettingError("schema_registry.descriptor_set", f"{path}: cannot be read: {os_reason(error)}") from None
    except protobuf.message.DecodeError:
        raise SettingError(
            "schema_registry.descriptor_set",
            f"{path}: is not a descriptor set: make one with protoc --include_imports --descriptor_set_out",
        ) from None
    for file in files.file:
        if message in _paths(file).values():
            try:
                return FileSet(files.file, file.name)
            except UnusableSchemaError as error:
                raise SettingError("schema_registry.descriptor_set", f"{path}: cannot be used: {error}") from None
    known = [name for file in files.file for name in _paths(file).values()][:10]
    raise SettingError(
        "schema_registry.message", f"{path} has no message {message}: use its full name, one of {', '.join(known)}"
    )


def _parsed(text: str, name: str) -> Any:
    protobuf = import_protobuf()
    file = protobuf.descriptor_pb2.FileDescriptorProto()
    try:
        file.ParseFromString(base64.b64decode(text, validate=True))
    except (binascii.Error, ValueError, protobuf.message.DecodeError):
        raise UnusableSchemaError(
            f"the registry has {name[:100]} as text only: name a file of protoc --include_imports --descriptor_set_out "
            "as descriptor_set, and the message in it"
        ) from None
    return file


def _paths(file: Any) -> Mapping[Indexes, str]:
    """Return the full names of all messages of a file by their indexes, in the order of the file."""
    found: dict[Indexes, str] = {}
    prefix = f"{file.package}." if file.package else ""

    def add(messages: Sequence[Any], path: Indexes, prefix: str) -> None:
        # Those that a map stands for have no place in the file's text, where producers count.
        real = [one for one in messages if not one.options.map_entry]
        for index, message in enumerate(real):
            if len(found) >= _MOST_MESSAGES:
                raise UnusableSchemaError(f"it has more than {_MOST_MESSAGES:,} messages")
            found[*path, index] = f"{prefix}{message.name}"
            add(message.nested_type, (*path, index), f"{prefix}{message.name}.")

    add(file.message_type, (), prefix)
    return found


def _built_in(name: str) -> Any | None:
    """Return a file that every Protobuf has, or Confluent's registry; None for any other."""
    protobuf = import_protobuf()
    file = protobuf.descriptor_pb2.FileDescriptorProto()
    if name == _CONFLUENT_DECIMAL:
        file.name, file.package, file.syntax = name, "confluent.type", "proto3"
        decimal = file.message_type.add(name="Decimal")
        kinds = protobuf.descriptor_pb2.FieldDescriptorProto
        fields = (("value", kinds.TYPE_BYTES), ("precision", kinds.TYPE_UINT32), ("scale", kinds.TYPE_INT32))
        for number, (field, kind) in enumerate(fields, 1):
            decimal.field.add(name=field, number=number, type=kind, label=kinds.LABEL_OPTIONAL)
        return file
    if name in [f"google/protobuf/{one}.proto" for one in _WELL_KNOWN]:
        from google.protobuf import (  # noqa: F401 - they make the files known
            any_pb2,
            duration_pb2,
            empty_pb2,
            field_mask_pb2,
            struct_pb2,
            timestamp_pb2,
            wrappers_pb2,
        )

        protobuf.descriptor_pool.Default().FindFileByName(name).CopyToProto(file)
        return file
    return None


def _forget_import(file: Any, name: str) -> None:
    """Take out an import of which only options are used; the numbers of public ones move."""
    place = list(file.dependency).index(name)
    del file.dependency[place]
    for numbers in (file.public_dependency, file.weak_dependency):
        moved = [one - (one > place) for one in numbers if one != place]
        del numbers[:]
        numbers.extend(moved)
