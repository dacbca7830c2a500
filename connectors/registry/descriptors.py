"""Protobuf message classes from descriptors of a registry or a file, made at run time; no code is generated."""

from __future__ import annotations

import base64
import importlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

from streamkernel.connectors.os_reason import os_reason
from streamkernel.connectors.ports import ConnectorError, SettingError
from streamkernel.connectors.registry.client import SchemaSet, UnusableSchemaError

__all__ = ["FileSet", "Indexes", "descriptor_file", "import_protobuf", "registry_files"]

Indexes: TypeAlias = tuple[int, ...]
"""A message's index in its file, after the index in each message around it."""

_WELL_KNOWN = ("any", "descriptor", "duration", "empty", "field_mask", "struct", "timestamp", "wrappers")
# Confluent's registry knows these without a reference. The first has options only, which no value needs.
_CONFLUENT_META = "confluent/meta.proto"
_CONFLUENT_DECIMAL = "confluent/type/decimal.proto"
_DECIMAL_FIELDS = (("value", "TYPE_BYTES"), ("precision", "TYPE_UINT32"), ("scale", "TYPE_INT32"))


def import_protobuf() -> Any:
    """Return the package google.protobuf with its modules; raises `ConnectorError` if it is not installed."""
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
    """The messages of one Protobuf file and its imports.

    Parameters
    ----------
    files
        Descriptors of files, in any order.
    main
        The name of the file with the messages.

    Raises
    ------
    UnusableSchemaError
        For invalid descriptors.

    """

    def __init__(self, files: Iterable[Any], main: str) -> None:
        protobuf = import_protobuf()
        self._pool = protobuf.descriptor_pool.DescriptorPool()
        self._class_of = protobuf.message_factory.GetMessageClass
        self._files = {file.name: file for file in files}
        self._added: set[str] = set()
        try:
            self._add(main)
        except UnusableSchemaError:
            raise
        except Exception as error:  # the library raises many kinds for descriptors that do not fit
            text = " ".join(str(error).split())[:200]
            raise UnusableSchemaError(f"it is not a Protobuf schema ({type(error).__name__}: {text})") from None
        self._names = _names(self._files[main])

    def _add(self, name: str) -> None:
        """Add a file to the pool, after its imports."""
        if name in self._added:
            return
        self._added.add(name)
        file = self._files.get(name) or _built_in(name)
        if file is None:
            raise UnusableSchemaError(
                f"it imports {name[:100]}, which is missing: name a file of protoc --include_imports "
                "--descriptor_set_out as descriptor_set"
            )
        for other in file.dependency:
            self._add(other)
        self._pool.AddSerializedFile(file.SerializeToString())

    def name(self, indexes: Indexes) -> str | None:
        """Return the full name of a message of the main file; None if there is none."""
        return self._names.get(indexes)

    def indexes(self, name: str | None) -> Indexes:
        """Return the indexes of a message of the main file by its full name; of its first message for None.

        Raises
        ------
        UnusableSchemaError
            If there is none.

        """
        for indexes, known in self._names.items():
            if name is None or known == name:
                return indexes
        what = "no message" if name is None else f"no message {name[:100]}"
        raise UnusableSchemaError(f"it has {what}, only {', '.join(list(self._names.values())[:10]) or 'others'}")

    def message_class(self, name: str) -> Any:
        """Return the class of a message by its full name."""
        return self._class_of(self._pool.FindMessageTypeByName(name))


def registry_files(schemas: SchemaSet) -> FileSet:
    """Return the files of a schema in the registry's form ``serialized``."""
    # The main file comes last, so that no reference can take its name.
    files = []
    for name, one in [*schemas.references.items(), ("the schema", schemas.main)]:
        file = import_protobuf().descriptor_pb2.FileDescriptorProto()
        try:
            file.ParseFromString(base64.b64decode(one.text, validate=True))
        except (ValueError, import_protobuf().message.DecodeError):
            raise UnusableSchemaError(
                f"the registry has {name[:100]} as text only: name a file of protoc --include_imports "
                "--descriptor_set_out as descriptor_set, and the message in it"
            ) from None
        file.name = name
        files.append(file)
    return FileSet(files, "the schema")


def descriptor_file(path: str, message: str) -> FileSet:
    """Return the files of a descriptor set that holds a message; raises `ValueError`, naming the key, otherwise."""
    protobuf = import_protobuf()
    key = "schema_registry.descriptor_set"
    files = protobuf.descriptor_pb2.FileDescriptorSet()
    try:
        files.ParseFromString(Path(path).read_bytes())
    except OSError as error:
        raise SettingError(key, f"{path}: cannot be read: {os_reason(error)}") from None
    except protobuf.message.DecodeError:
        raise SettingError(
            key, f"{path}: is not a descriptor set: make one with protoc --include_imports --descriptor_set_out"
        ) from None
    known: list[str] = []
    for file in files.file:
        names = _names(file).values()
        if message in names:
            try:
                return FileSet(files.file, file.name)
            except UnusableSchemaError as error:
                raise SettingError(key, f"{path}: cannot be used: {error}") from None
        known += names
    raise SettingError(
        "schema_registry.message",
        f"{path} has no message {message}: use its full name, one of {', '.join(known[:10])}",
    )


def _names(file: Any) -> Mapping[Indexes, str]:
    """Return the full names of all messages of a file by their indexes, in the order of the file."""

    def listed(messages: Sequence[Any], path: Indexes, prefix: str) -> Iterator[tuple[Indexes, str]]:
        # The entries of maps are messages too, but they have no place in the file's text, and no index.
        real = [one for one in messages if not one.options.map_entry]
        for index, message in enumerate(real):
            yield (*path, index), f"{prefix}{message.name}"
            yield from listed(message.nested_type, (*path, index), f"{prefix}{message.name}.")

    return dict(listed(file.message_type, (), f"{file.package}." if file.package else ""))


def _built_in(name: str) -> Any | None:
    """Return a file of Protobuf itself or of Confluent's registry; None for any other."""
    protobuf = import_protobuf()
    file = protobuf.descriptor_pb2.FileDescriptorProto(name=name, syntax="proto3")
    if name == _CONFLUENT_META:
        return file
    if name == _CONFLUENT_DECIMAL:
        file.package = "confluent.type"
        decimal = file.message_type.add(name="Decimal")
        for number, (field, kind) in enumerate(_DECIMAL_FIELDS, 1):
            decimal.field.add(name=field, number=number, type=kind, label="LABEL_OPTIONAL")
        return file
    if name in (f"google/protobuf/{one}.proto" for one in _WELL_KNOWN):
        module = importlib.import_module(name.removesuffix(".proto").replace("/", ".") + "_pb2")
        module.DESCRIPTOR.CopyToProto(file)
        return file
    return None
