"""Fuzzing with a time limit: bytes, checkpoints, marks, configurations and requests that nobody would write."""
