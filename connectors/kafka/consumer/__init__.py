"""Consumes a topic with kafka-python, for the source, the sink and the group: bounded batches, one-sentence errors."""
