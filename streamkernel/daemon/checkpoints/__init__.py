"""Checkpoint files: the atomic store, the format, the model as bytes and its restricted unpickler."""
