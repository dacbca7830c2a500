"""Configurations as texts, and what becomes of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from streamkernel.daemon.assembly.plan import prepare
from streamkernel.daemon.config.plan import Plan
from streamkernel.daemon.config.problems import ConfigError

SOURCE = "source: {kind: csv, path: a.csv, target: y}\n"
MODEL = "model: [streamkernel.KernelClassifier]\n"
GOOD = SOURCE + MODEL
CSV = MODEL + "source: {kind: csv, path: a, "
KAFKA = MODEL + "source: {kind: kafka, topic: t, target: y, bootstrap_servers: a:1, }"
SAVED = GOOD + "checkpoint: {directory: a, "
PREDICT = GOOD + "mode: predict\nserve_from: a\n"


def topic(more: str) -> str:
    """A configuration of a topic with more settings of its source."""
    return KAFKA.replace("}", more + "}")


def plan_of(tmp_path: Path, text: str, **environment: str) -> Plan:
    path = tmp_path / "config.yaml"
    path.write_text(text)
    return prepare(path, environment)


def lines_of(tmp_path: Path, text: str, **environment: str) -> list[str]:
    with pytest.raises(ConfigError) as caught:
        plan_of(tmp_path, text, **environment)
    return caught.value.lines


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
