"""Group mode in a configuration: what it rules out, and what becomes of it for one partition."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from streamkernel.daemon import cli
from streamkernel.daemon.assembly.plan import plan_of
from streamkernel.daemon.components.group_mode import partition_document
from streamkernel.daemon.config.document import parse
from streamkernel.daemon.config.problems import ConfigError
from tests.daemon.conftest import Home

SOURCE: dict[str, Any] = {
    "kind": "kafka",
    "topic": "t",
    "bootstrap_servers": "localhost:9092",
    "target": "y",
    "group": "g",
}
FINE: dict[str, Any] = {
    "source": SOURCE,
    "model": [{"streamkernel.KernelClassifier": {"seed": 1}}],
    "predictions": {"kind": "jsonl", "path": "out/{partition}/predictions.jsonl"},
    "dead_letters": {"kind": "kafka", "topic": "d", "bootstrap_servers": "localhost:9092"},
    "checkpoint": {"directory": "out/state"},
}


def lines(**changes: Any) -> list[str]:
    """What is wrong with a configuration in group mode that has these changes."""
    settings = {key: value for key, value in {**FINE, **changes}.items() if value is not None}
    try:
        plan_of(Path("a.yaml"), parse(yaml.safe_dump(settings)))
    except ConfigError as error:
        return error.lines
    return []


@pytest.mark.parametrize(
    ("changes", "line"),
    [
        (
            {"checkpoint": None},
            "source.group: needs checkpoint.directory (in mode predict, in addition to serve_from): members hand",
        ),
        (
            {"mode": "predict"},
            "source.group: needs checkpoint.directory (in mode predict, in addition to serve_from)",
        ),
        ({"source": {**SOURCE, "partitions": [0, 1]}}, "source.partitions: must be all with source.group"),
        ({"source": {**SOURCE, "order": "logged"}}, "source.order: not with source.group"),
        ({"source": {**SOURCE, "options": {"group_id": "h"}}}, "source.options.group_id: not with source.group"),
        (
            {"source": {**SOURCE, "group": None, "options": {"session_timeout_ms": 6000}}},
            "source.options.session_timeout_ms: works only with source.group",
        ),
        (
            {"predictions": {"kind": "csv", "path": "out/predictions.csv"}},
            "predictions.path: must contain {partition} with source.group",
        ),
        (
            {"predictions": {**FINE["dead_letters"], "topic": "p", "transactional_id": "daemon"}},
            "predictions.transactional_id: must contain {partition} with source.group",
        ),
        (
            {"labels": {"key": "id", "source": {"kind": "jsonl", "path": "a.jsonl", "target": "y"}}},
            "labels: not with source.group",
        ),
        (
            {"source": {**SOURCE, "group": None}, "labels": {"key": "id", "source": {**SOURCE, "topic": "l"}}},
            "labels.source.group: not for labels",
        ),
    ],
)
def test_what_cannot_go_with_a_group(changes: dict[str, Any], line: str) -> None:
    (found,) = lines(**changes)
    assert found.startswith(line)


def test_the_share_of_one_partition() -> None:
    settings = {
        **FINE,
        "source": {**SOURCE, "topic": "${TOPIC}", "options": {"client_id": "c", "session_timeout_ms": 6000}},
        "predictions": {**FINE["dead_letters"], "topic": "p", "transactional_id": "daemon-{partition}"},
        "dead_letters": {"kind": "csv", "path": "${OUT}/dead-{partition}.csv"},
        "checkpoint": {"directory": "${OUT}/state", "keep": 5},
        "metrics": {"host": "0.0.0.0", "port": 9108, "window": 77, "tls": {"certificate": "c.pem", "key": "k.pem"}},
    }
    whole = parse(yaml.safe_dump(settings), environment={"TOPIC": "clicks", "OUT": "/mnt/out"})
    document = partition_document(whole, 12)
    plan = plan_of(Path("a.yaml"), document)
    config = plan.config.model_dump()
    assert (config["source"]["group"], config["source"]["partitions"], config["source"]["topic"]) == (
        None,
        [12],
        "clicks",
    )
    assert plan.config.source.options.given() == {"client_id": "c"}  # type: ignore[union-attr]
    assert config["predictions"]["transactional_id"] == "daemon-12"
    assert config["dead_letters"]["path"] == "/mnt/out/dead-12.csv"
    assert (config["checkpoint"]["directory"], config["checkpoint"]["keep"]) == ("/mnt/out/state/partition-12", 5)
    metrics = config["metrics"]
    assert (metrics["host"], metrics["port"], metrics["window"], metrics["tls"]) == ("127.0.0.1", 0, 77, None)
    # What is stored and shown keeps its variables.
    assert plan.raw["dead_letters"]["path"] == "${OUT}/dead-12.csv"
    assert plan.raw["checkpoint"]["directory"] == "${OUT}/state/partition-12"
    assert plan.redact("in /mnt/out") == "in /mnt/out"
    # The whole stays what it was.
    assert whole.values["source"]["group"] == "g"
    assert partition_document(parse(yaml.safe_dump({**settings, "metrics": None})), 0).values["metrics"] is None

    served = {**settings, "mode": "predict", "serve_from": "/mnt/learned/partition-{partition}"}
    served["initial_model"] = {"checkpoint": "/mnt/{partition}.skc"}
    values = partition_document(parse(yaml.safe_dump(served)), 7).values
    assert values["serve_from"] == "/mnt/learned/partition-7"
    assert values["initial_model"] == {"checkpoint": "/mnt/7.skc"}

    del settings["source"]["group"]  # type: ignore[attr-defined]
    with pytest.raises(ConfigError, match=r"source\.group: required"):
        partition_document(parse(yaml.safe_dump(settings)), 0)


@pytest.mark.parametrize("option", ["--fresh", "--max-records=5"])
def test_options_of_the_command_line_that_a_group_rules_out(
    option: str, home: Home, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["run", str(home.configure(**FINE)), option]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(f"{option.partition('=')[0]}: not with source.group: ")


def test_a_group_cannot_be_evaluated(home: Home, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["evaluate", str(home.configure(**FINE))]) == 1
    assert "evaluate needs a source that ends" in capsys.readouterr().err
