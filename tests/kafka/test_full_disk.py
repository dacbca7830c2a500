"""A state directory on a full disk at the start of a daemon that has a new output: nothing lost or doubled."""

from __future__ import annotations

import errno
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from streamkernel.connectors.files import output as files
from streamkernel.connectors.ports import SinkError
from streamkernel.daemon.assembly.plan import prepare
from streamkernel.daemon.base.errors import DaemonError
from streamkernel.daemon.checkpoints.store import CheckpointStore
from streamkernel.daemon.runtime import run
from tests.daemon.conftest import Home
from tests.kafka.cluster import Cluster
from tests.kafka.learning import section
from tests.kafka.producing import consume

MakeTopic = Callable[..., str]


@pytest.fixture
def full(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Let the disk be full for checkpoints, and failing for files where that is asked for."""

    def fill(files_too: bool = False) -> None:
        def refuse(*_: object) -> Path:
            raise OSError(errno.ENOSPC, "No space left on device")

        def fail(_: int) -> None:
            raise OSError(errno.EIO, "Input/output error")

        monkeypatch.setattr(CheckpointStore, "_put", refuse)
        if files_too:
            monkeypatch.setattr(files.os, "fsync", fail)

    return fill


def configured(home: Home, broker: Cluster, topic: str | None, **more: Any) -> Home:
    """A daemon that learns numbers from a file, one of ten of them bad, with its dead letters in a topic, or none."""
    lines = (json.dumps({"a": row if row % 10 else "x" * 300, "y": row % 2 == 0}) for row in range(200))
    (home.folder / "stream.jsonl").write_text("\n".join(lines) + "\n")
    home.configure(
        source={"kind": "jsonl", "path": "stream.jsonl", "target": "y", "target_type": "bool"},
        model=["river.linear_model.LogisticRegression"],
        predictions={"kind": "jsonl", "path": "out/predictions.jsonl"},
        dead_letters=topic and section(broker.bootstrap, topic, **more),
        checkpoint={"directory": "out/state", "every_records": 20},
    )
    return home


@pytest.mark.parametrize("files_too", [False, True], ids=["full", "and files fail"])
@pytest.mark.parametrize("transactional_id", [None, "letters"])
def test_an_output_that_is_new(
    broker: Cluster,
    topic: MakeTopic,
    home: Home,
    monkeypatch: pytest.MonkeyPatch,
    full: Callable[..., None],
    transactional_id: str | None,
    files_too: bool,
) -> None:
    """No line is written to it before a checkpoint says from where on: a restart would not know whose they are."""
    monkeypatch.chdir(home.folder)
    name = topic()
    run(prepare(configured(home, broker, None).config), max_records=50)
    more = {} if transactional_id is None else {"transactional_id": f"{name}-letters"}
    config = configured(home, broker, name, **more).config
    before = (home.header()["source"]["account"], home.lines("out/predictions.jsonl"))
    full(files_too)
    with pytest.raises((DaemonError, SinkError), match="Input/output error" if files_too else "the run did not start"):
        run(prepare(config))
    monkeypatch.undo()
    monkeypatch.chdir(home.folder)
    assert (home.header()["source"]["account"], home.lines("out/predictions.jsonl")) == before
    assert consume(broker.bootstrap, name) == {0: []}
    run(prepare(config))
    places = [dict(record.headers)["source.offset"] for record in consume(broker.bootstrap, name)[0]]
    assert len(places) == len(set(places)) == 15  # those of the last 150 records
    assert home.header()["source"]["account"]["consumed"] == 200
