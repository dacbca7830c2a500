"""Schema registries: values of messages read and written as Avro, JSON Schema or Protobuf."""
