"""Configurations of models that are refitted on their windows."""

from __future__ import annotations

from typing import Any

INNER = {"streamkernel.KernelClassifier": {"seed": 1, "max_features": 64, "block_size": 16, "batch_size": 16}}
SOLVER = {"streamkernel.window.Exact": {"l2": 0.01, "max_passes": 5}}


def refitted(**given: Any) -> list[Any]:
    """Return the steps of a model that is refitted every 300 labeled records on the last 500."""
    return [{"streamkernel.WindowRefit": {"model": INNER, "solver": SOLVER, "window": 500, "every": 300, **given}}]
