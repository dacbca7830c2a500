"""Kafka topics: records from one, lines to one."""
