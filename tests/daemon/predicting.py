"""Configurations of runs that predict, beside the run that learns which `Home.configure` describes."""

from __future__ import annotations

from typing import Any

OWN = {"directory": "own/state", "every_records": 100}


def predicting(**sections: Any) -> dict[str, Any]:
    """Mode predict with outputs of its own, over the file with other records."""
    return {
        "mode": "predict",
        "serve_from": "out/state",
        "source": {"kind": "csv", "path": "other.csv", "target": "y"},
        "predictions": {"kind": "jsonl", "path": "own/predictions.jsonl"},
        "dead_letters": {"kind": "jsonl", "path": "own/dead.jsonl"},
        "checkpoint": None,
        **sections,
    }
