"""Dead letters of a topic, mended and replayed: their predictions stand in the output topic once."""

from __future__ import annotations

import json
import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.daemon.conftest import Home, Launcher
from tests.kafka.cluster import Cluster
from tests.kafka.learning import section
from tests.kafka.producing import produce
from tests.kafka.sinking import standing

RECORDS, BAD = 60, (4, 21, 33, 40)
_OUTPUTS = {"predictions": "predictions", "dead_letters": "dead"}


@pytest.mark.parametrize(
    "crash",
    [
        "flushed:1",
        "checkpoint-after-rename:1",
        pytest.param("consumed:1", marks=pytest.mark.long),
        pytest.param("committing:1", marks=pytest.mark.long),
    ],
)
def test_each_line_stands_there_once(
    broker: Cluster,
    topic: Callable[..., str],
    launcher: Launcher,
    tmp_path: Path,
    crash: str,
) -> None:
    source, output = topic(partitions=2), topic()
    rows = [b"{bad" if n in BAD else {"a": n / 10, "y": n % 2 == 0} for n in range(RECORDS)]
    produce(broker.bootstrap, source, rows, partition=lambda number: number % 2)
    home = Home(tmp_path)
    home.configure(
        source=section(broker.bootstrap, source, target="y", target_type="bool"),
        model=["river.linear_model.LogisticRegression"],
        predictions=section(broker.bootstrap, output),
    )

    def call(*arguments: str, **environment: str) -> int:
        return launcher.call(home, *arguments, **environment).returncode

    assert call("run", "config.yaml", "--max-records", str(RECORDS)) == 0
    letters = [letter | {"raw": '{"a": 1.5, "y": true}'} for letter in home.lines("out/dead.jsonl")]
    assert len(letters) == len(BAD)
    (tmp_path / "mended.jsonl").write_text("".join(json.dumps(letter) + "\n" for letter in letters))
    before = standing(broker, output)
    if crash != "consumed:1":  # the daemon in between, which has nothing to read
        assert call("replay", "mended.jsonl", "config.yaml", STREAMKERNEL_CRASH=crash) == -signal.SIGKILL
        assert call("run", "config.yaml", "--max-records", "0") == 0
    assert call("replay", "mended.jsonl", "config.yaml", STREAMKERNEL_CRASH=crash) in (0, -signal.SIGKILL)
    for _ in range(2):
        assert call("replay", "mended.jsonl", "config.yaml") == 0
    after = standing(broker, output)
    assert {one: lines[: len(before[one])] for one, lines in after.items()} == before
    assert {one: sorted(lines) for one, lines in after.items()} == {one: [*range(RECORDS // 2)] for one in (0, 1)}
    account = home.header()["source"]["account"]
    assert (account["consumed"], account["learned"], account["dead"]) == (RECORDS, RECORDS, 0)


def test_letters_of_a_group_go_to_their_partitions(
    broker: Cluster, topic: Callable[..., str], launcher: Launcher, tmp_path: Path
) -> None:
    source = topic(partitions=2)
    rows = [b"{bad" if n in BAD else {"a": n / 10, "y": n % 2 == 0} for n in range(RECORDS)]
    produce(broker.bootstrap, source, rows, partition=lambda number: number % 2)
    home = Home(tmp_path)
    home.configure(
        source=section(broker.bootstrap, source, group="members", target="y", target_type="bool"),
        model=["river.linear_model.LogisticRegression"],
        predictions={"kind": "jsonl", "path": "out/predictions-{partition}.jsonl"},
        dead_letters={"kind": "jsonl", "path": "out/dead-{partition}.jsonl"},
    )
    letters = []
    for partition in (0, 1):
        # As the members' children run, each to the end of its partition.
        alone = {
            "source.group": "null",
            "source.partitions": f"[{partition}]",
            "checkpoint.directory": f"out/state/partition-{partition}",
            **{f"{key}.path": f"out/{name}-{partition}.jsonl" for key, name in _OUTPUTS.items()},
        }
        settings = [word for key, value in alone.items() for word in ("--set", f"{key}={value}")]
        ended = launcher.call(home, "run", "config.yaml", "--max-records", str(RECORDS // 2), *settings)
        assert ended.returncode == 0, ended.stderr
        letters += home.lines(f"out/dead-{partition}.jsonl")
    mended = [letter | {"raw": '{"a": 1.5, "y": true}'} for letter in letters]
    (tmp_path / "mended.jsonl").write_text("".join(json.dumps(letter) + "\n" for letter in mended))
    for said in (f"{len(BAD)} replayed", f"0 replayed; {len(BAD)} replayed before"):
        ended = launcher.call(home, "replay", "mended.jsonl", "config.yaml")
        assert (ended.returncode, ended.stdout) == (0, f"mended.jsonl: {said}\n"), ended.stderr
    for partition in (0, 1):
        account = home.header(f"out/state/partition-{partition}")["source"]["account"]
        assert (account["consumed"], account["learned"], account["dead"]) == (RECORDS // 2, RECORDS // 2, 0)
        assert len(home.lines(f"out/predictions-{partition}.jsonl")) == RECORDS // 2
