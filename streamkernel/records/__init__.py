"""Encoders of records: inputs by name, targets, data frames, and the batch of a call."""
