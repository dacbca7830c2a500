"""Protobuf messages: the library makes their classes from descriptors, and this module returns their JSON form."""

from __future__ import annotations

import base64
import importlib
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from streamkernel.connectors.decode import UndecodableError, shown
from streamkernel.connectors.os_reason import os_reason
from streamkernel.connectors.ports import ConnectorError, SettingError
from streamkernel.connectors.registry.client import UnusableSchemaError
from streamkernel.connectors.registry.framing import HEAD_BYTES, base64_text, decimal_number, message_head

__all__ = ["MessageTypes", "ProtobufDecoder", "descriptor_file", "import_protobuf", "registry_types"]

_PROTOC = "protoc --include_imports --descriptor_set_out"


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


class MessageTypes:
    """The messages of one Protobuf file. The library makes their classes at run time.

    Parameters
    ----------
    files
        Descriptors of files, in any order.
    main
        The name of the file with the messages.

    Attributes
    ----------
    heads
        The bytes before each message, by its full name.

    Raises
    ------
    UnusableSchemaError
        For invalid descriptors.

    """

    def __init__(self, files: Iterable[Any], main: str) -> None:
        protobuf = import_protobuf()
        try:
            file = protobuf.descriptor_pool.DescriptorPool(_Files(files)).FindFileByName(main)
            found = list(_messages(file.message_types_by_name.values(), ()))
            make = protobuf.message_factory.GetMessageClass
            self._classes = {message.full_name: make(message) for _, message in found}
        except UnusableSchemaError:
            raise
        except Exception as error:  # the library raises many kinds for descriptors that do not fit
            text = " ".join(str(error).split())[:200]
            raise UnusableSchemaError(f"it is not a Protobuf schema ({type(error).__name__}: {text})") from None
        self.heads = {message.full_name: message_head(path) for path, message in found}
        # No head begins with another one. A lone index may also have the number of indexes before it.
        names = {head: name for name, head in self.heads.items()} | {b"\2\0": next(iter(self.heads), "")}
        self._names = sorted(names.items())

    def name(self, message: str | None) -> str:
        """Return the full name of a message, or of the first one for None; raises `UnusableSchemaError`."""
        names = list(self.heads)
        if names and (message is None or message in self.heads):
            return message or names[0]
        what = "no message" if message is None else f"no message {message[:100]}"
        raise UnusableSchemaError(f"it has {what}, only {', '.join(names[:10]) or 'others'}")

    def message_class(self, name: str) -> Any:
        """Return the class of a message by its full name."""
        return self._classes[name]

    def find(self, value: bytes) -> tuple[str, bytes]:
        """Return the name of a value's message, and its bytes; raises `UndecodableError`."""
        payload = value[HEAD_BYTES:]
        place = bisect_right(self._names, payload, key=lambda pair: pair[0])
        head, name = self._names[place - 1] if place else (b"", "")
        if not name or not payload.startswith(head):
            raise UndecodableError("schema", f"the bytes {payload[:8].hex(' ')} name no message of the schema")
        return name, payload[len(head) :]


class _Files:
    """A database of files for the library's pool, which asks for each file once, imports too."""

    def __init__(self, files: Iterable[Any]) -> None:
        self._files = {file.name: file for file in files}

    def FindFileByName(self, name: str) -> Any:
        file = self._files.pop(name, None) or _built_in(name)
        if file is None:
            raise UnusableSchemaError(
                f"it imports {name[:100]}, which is missing: name a file of {_PROTOC} as descriptor_set"
            )
        return file


def _built_in(name: str) -> Any | None:
    """Return a file of Protobuf itself, or one that Confluent's registry knows without a reference; else None."""
    make = import_protobuf().descriptor_pb2.FileDescriptorProto
    if name == "confluent/meta.proto":  # options only
        return make(name=name)
    if name == "confluent/type/decimal.proto":
        kinds = {"value": "TYPE_BYTES", "precision": "TYPE_UINT32", "scale": "TYPE_INT32"}
        fields = [{"name": one, "number": n, "type": kind} for n, (one, kind) in enumerate(kinds.items(), 1)]
        message = {"name": "Decimal", "field": fields}
        return make(name=name, package="confluent.type", syntax="proto3", message_type=[message])
    for known in ("any", "descriptor", "duration", "empty", "field_mask", "struct", "timestamp", "wrappers"):
        if name == f"google/protobuf/{known}.proto":
            file = make()
            importlib.import_module(f"google.protobuf.{known}_pb2").DESCRIPTOR.CopyToProto(file)
            return file
    return None


def _messages(messages: Iterable[Any], path: Sequence[int]) -> Iterator[tuple[Sequence[int], Any]]:
    """Yield messages and those in them with their indexes; entries of maps have none."""
    for index, message in enumerate(one for one in messages if not one.GetOptions().map_entry):
        yield (*path, index), message
        yield from _messages(message.nested_types, (*path, index))


def registry_types(texts: Mapping[str, str]) -> MessageTypes:
    """Return the messages of the last schema, in the registry's form ``serialized``; the others are its imports."""
    files = {}
    for name, text in texts.items():
        try:
            file = import_protobuf().descriptor_pb2.FileDescriptorProto.FromString(
                base64.b64decode(text, validate=True)
            )
        except (ValueError, import_protobuf().message.DecodeError):
            raise UnusableSchemaError(
                f"the registry has {name[:100] or 'the schema'} as text only: name a file of {_PROTOC} as "
                "descriptor_set, and the message in it"
            ) from None
        file.name = name or "the schema"
        files[file.name] = file
    return MessageTypes(files.values(), file.name)


def descriptor_file(path: str, message: str) -> MessageTypes:
    """Return the messages of a descriptor set's file that has a message; raises `ValueError`, naming the key."""
    protobuf = import_protobuf()
    key = "schema_registry.descriptor_set"
    known: list[str] = []
    try:
        files = protobuf.descriptor_pb2.FileDescriptorSet.FromString(Path(path).read_bytes()).file
        for file in files:
            types = MessageTypes(files, file.name)
            if message in types.heads:
                return types
            known += types.heads
    except OSError as error:
        raise SettingError(key, f"{path}: cannot be read: {os_reason(error)}") from None
    except protobuf.message.DecodeError:
        raise SettingError(key, f"{path}: is not a descriptor set: make one with {_PROTOC}") from None
    except UnusableSchemaError as error:
        raise SettingError(key, f"{path}: cannot be used: {error}") from None
    names = ", ".join(known[:10])
    raise SettingError("schema_registry.message", f"{path} has no message {message}: use its full name, one of {names}")


class ProtobufDecoder:
    """A decoder of the values of one Protobuf schema, in the wire format of schema registries.

    Fields have the names of the schema. A field with presence (``optional``, in a ``oneof``, a message) is absent if it
    is not set. So are empty repeated fields and maps. Other fields have their default. Enums become their names, bytes
    base64, ``Timestamp`` and ``Duration`` seconds, wrappers their value, ``Struct`` a mapping.

    Parameters
    ----------
    types
        The messages of the schema.
    message
        The full name of the only message to decode; None: every one of the main file.

    """

    def __init__(self, types: MessageTypes, message: str | None = None) -> None:
        self._types = types
        self._message = None if message is None else types.name(message)
        self._error: type[Exception] = import_protobuf().message.DecodeError
        self._fields: dict[str, list[tuple[str, Callable[[Any], Any]]]] = {}

    def decode(self, value: bytes) -> Any:
        """Return a message as JSON would have it; raise `UndecodableError` if the bytes do not fit."""
        name, payload = self._types.find(value)
        if self._message not in (None, name):
            raise UndecodableError("schema", f"the message is {name}, not {self._message}")
        try:
            return self._plain(self._types.message_class(name).FromString(payload))
        except self._error:
            raise UndecodableError("schema", f"the bytes are not a Protobuf message {name}") from None
        except RecursionError:
            raise UndecodableError("nested", "the message is nested too deeply") from None

    def _plain(self, message: Any) -> Any:
        """Return a message's JSON form."""
        descriptor = message.DESCRIPTOR
        special = _SPECIAL.get(descriptor.full_name)
        if special is not None:
            return special(message)
        if descriptor.full_name not in self._fields:
            self._fields[descriptor.full_name] = [(field.name, self._field(field)) for field in descriptor.fields]
        return {name: take(message) for name, take in self._fields[descriptor.full_name]}

    def _field(self, field: Any) -> Callable[[Any], Any]:
        """Return the reader of a field of a message."""
        name = field.name
        if field.message_type is not None and field.message_type.GetOptions().map_entry:
            value = field.message_type.fields_by_name.get("value")
            if value is None or not field.is_repeated:
                raise UndecodableError("schema", f"the map {shown(name)} of its schema is invalid")
            item = self._value(value)
            return lambda message: {_key(key): item(one) for key, one in getattr(message, name).items()} or None
        item = self._value(field)
        if field.is_repeated:
            return lambda message: [item(one) for one in getattr(message, name)] or None
        if field.has_presence:
            return lambda message: item(getattr(message, name)) if message.HasField(name) else None
        return lambda message: item(getattr(message, name))

    def _value(self, field: Any) -> Callable[[Any], Any]:
        """Return the reader of one value of a field."""
        if field.message_type is not None:
            return self._plain
        if field.enum_type is not None:
            names = {one.number: one.name for one in reversed(field.enum_type.values)}
            return lambda number: names.get(number, number)
        return base64_text if field.type == field.TYPE_BYTES else lambda value: value


def _key(key: Any) -> str:
    return str(key).lower() if isinstance(key, bool) else str(key)


def _seconds(value: Any) -> float:
    return float(value.seconds + value.nanos / 1e9)


def _dynamic(value: Any) -> Any:
    try:
        return import_protobuf().json_format.MessageToDict(value)
    except ValueError as error:  # it refuses NaN and infinity here
        raise UndecodableError("infinite", str(error)[:200]) from None


# Messages with a JSON form of their own.
_SPECIAL: Mapping[str, Callable[[Any], Any]] = {
    "google.protobuf.Timestamp": _seconds,
    "google.protobuf.Duration": _seconds,
    **{f"google.protobuf.{kind}": _dynamic for kind in ("Struct", "Value", "ListValue")},
    "google.protobuf.BytesValue": lambda value: base64_text(value.value),
    "confluent.type.Decimal": lambda value: decimal_number(value.value, value.scale),
    **{
        f"google.protobuf.{kind}Value": lambda value: value.value
        for kind in ("Double", "Float", "Int64", "UInt64", "Int32", "UInt32", "Bool", "String")
    },
}
