"""The source: records out of a topic, in an order, from the offsets of a checkpoint on."""
