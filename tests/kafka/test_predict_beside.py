"""A run that predicts from the topic that another one learns from: both are killed, each line stands there once."""

from __future__ import annotations

import itertools
import json
import random
import signal
from collections.abc import Callable
from typing import Any

import pytest

from tests.daemon.conftest import Home, Launcher
from tests.kafka.cluster import Cluster
from tests.kafka.learning import rings, section
from tests.kafka.producing import consume, produce
from tests.kafka.sinking import place_of

ROUND = 240  # records that a run reads which nothing kills
KILLS = ["consumed:{}", "flushed:2", "committed:2", "checkpoint-before-rename:2", "checkpoint-writing:2"]


@pytest.mark.parametrize("rounds", [5, pytest.param(40, marks=pytest.mark.long)])
def test_kills_on_both_sides(
    broker: Cluster, topic: Callable[..., str], home: Home, launcher: Launcher, rounds: int
) -> None:
    source, learned, served = topic(partitions=2), topic(partitions=2), topic(partitions=2)
    n_records = ROUND * rounds
    rows: list[Any] = rings(n_records)
    rows[7], rows[800] = b"\xff\xfe", b"{"
    produce(
        broker.bootstrap,
        source,
        rows,
        partition=lambda number: number % 2,
        keys=lambda number: b"k%d" % (number % 5),
        headers=lambda number: [("trace", b"%d" % number)],
    )
    reads = section(broker.bootstrap, source, target="y")
    model = [
        {"river.compose.Discard": {"args": ["id"]}},
        {"streamkernel.KernelClassifier": {"seed": 1, "max_features": 128}},
    ]

    def writes(topic: str, **more: Any) -> dict[str, Any]:
        return section(broker.bootstrap, topic, transactional_id=topic, flush_seconds=0.05, **more)

    home.configure(
        source={**reads, "order": "logged"},
        model=model,
        predictions=writes(learned),
        checkpoint={"directory": "out/state", "every_records": 100, "keep": 1},
    )
    assert launcher.call(home, "run", "config.yaml", "--max-records", "100").returncode == 0
    text = home.config.read_text()
    home.configure(
        mode="predict",
        serve_from="out/state",
        reload=0.001,
        source=reads,
        model=model,
        predictions=writes(served, key="source", pass_through=["headers"], include=["id", "kafka.key"]),
        dead_letters={"kind": "jsonl", "path": "own/dead.jsonl"},
        checkpoint={"directory": "own/state", "every_records": 100},
    )
    for command in ("check", "run"):
        ended = launcher.call(home, command, "config.yaml", "--set", f"predictions.transactional_id={learned}")
        assert ended.returncode == 1
        assert (
            f"predictions.transactional_id: {learned} belongs to the run that learned the"
            in ended.stdout + ended.stderr
        )
    home.config.rename(home.folder / "predict.yaml")
    home.config.write_text(text)

    draw = random.Random(7)
    killed = 0
    for kill in itertools.islice(itertools.cycle(KILLS), rounds):
        started = [
            launcher.start(
                home,
                "run",
                config,
                "--max-records",
                str(min(ROUND, n_records - consumed(home, state))),
                STREAMKERNEL_CRASH=kill.format(draw.randint(1, 150)),
            )
            for config, state in (("config.yaml", "out/state"), ("predict.yaml", "own/state"))
        ]
        for done in [one.wait() for one in started]:
            assert done.returncode in (0, -signal.SIGKILL), done.stderr
            killed += done.returncode != 0
    assert killed > rounds // 2
    for config, state in (("config.yaml", "out/state"), ("predict.yaml", "own/state")):
        left = str(n_records - consumed(home, state))
        ended = launcher.call(home, "run", config, "--max-records", left)
        assert ended.returncode == 0, ended.stderr
    for output in (learned, served):
        for partition, records in consume(broker.bootstrap, output, isolation_level="read_committed").items():
            bad = {7: 3, 800: 400}
            wanted = [n for n in range(n_records // 2) if 2 * n + partition not in bad]
            assert [place_of(record)[1] for record in records] == wanted
            if output == served:
                numbers = [json.loads(record.value)["checkpoint"] for record in records]
                assert numbers == sorted(numbers)
                assert all(record.key == json.loads(record.value)["kafka.key"].encode() for record in records)
                assert all(int(dict(record.headers)["trace"]) == json.loads(record.value)["id"] for record in records)
    assert len(home.lines("own/dead.jsonl")) == len(home.lines("out/dead.jsonl")) == 2


def consumed(home: Home, state: str) -> int:
    """How many records the newest checkpoint of a run has, 0 where there is none."""
    if not list((home.folder / state).glob("*.skc")):
        return 0
    return int(home.header(state)["source"]["account"]["consumed"])
