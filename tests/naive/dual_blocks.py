"""Twins of the dual steps of many records."""

from tests.naive.window_losses import dual_update


def dual_steps(kind, beta, z, y, step):
    return [dual_update(kind, b, score, label, step) for b, score, label in zip(beta, z, y, strict=True)]
