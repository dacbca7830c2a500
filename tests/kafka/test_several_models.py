"""Several models into a topic, exactly once: kills change no line, and a promotion is at one record."""

from __future__ import annotations

import json
import random
import signal
from collections.abc import Callable
from typing import Any

from tests.daemon.conftest import Home, Launcher
from tests.daemon.test_several_models import BOTH, several
from tests.kafka.cluster import Cluster
from tests.kafka.learning import section
from tests.kafka.producing import consume, produce
from tests.kafka.sinking import standing
from tests.kills.runs import kept

MakeTopic = Callable[..., str]
RECORDS = 2400
PROMOTED_AFTER = 1000
ALL_BUT_LAST = 1800


def rows() -> list[dict[str, Any]]:
    """Records, some of which have no label."""
    draw = random.Random(4)
    points = [(draw.gauss(0, 1), draw.gauss(0, 1)) for _ in range(RECORDS)]
    labels = [None if draw.random() < 0.03 else a * b > 0 for a, b in points]
    return [{"a": a, "b": b, "color": "red", "y": y} for (a, b), y in zip(points, labels, strict=True)]


def configure(home: Home, broker: Cluster, source: str, output: str, every_records: int) -> None:
    several(
        home,
        source=section(broker.bootstrap, source, target="y", target_type="bool"),
        models=BOTH,
        publish="champion",
        predictions=section(
            broker.bootstrap, output, transactional_id=output, models="all", include=["a"], flush_seconds=0.1
        ),
        checkpoint={"directory": "out/state", "every_records": every_records, "every_seconds": 400},
    )


def run_up_to(launcher: Launcher, home: Home, last: int) -> None:
    begun = list((home.folder / "out/state").glob("*.skc"))
    left = last - (home.header()["source"]["account"]["consumed"] if begun else 0)
    ended = launcher.call(home, "run", "config.yaml", "--max-records", str(left))
    assert ended.returncode == 0, ended.stderr


def kill_at(launcher: Launcher, home: Home, point: str) -> None:
    ended = launcher.call(home, "run", "config.yaml", STREAMKERNEL_CRASH=point)
    assert ended.returncode == -signal.SIGKILL, ended.stderr


def promote(launcher: Launcher, home: Home) -> None:
    promoted = launcher.call(home, "promote", "config.yaml", "challenger")
    assert promoted.returncode == 0, promoted.stderr


def lines_of(broker: Cluster, output: str) -> list[dict[str, Any]]:
    """Each line of a topic, which must be there once, and in order."""
    assert standing(broker, output, isolation_level="read_committed") == {0: [*range(RECORDS)]}
    return [
        json.loads(record.value) for record in consume(broker.bootstrap, output, isolation_level="read_committed")[0]
    ]


def test_kills_on_both_sides_of_a_promotion_change_no_line(
    broker: Cluster, topic: MakeTopic, homes: Callable[[str], Home], launcher: Launcher
) -> None:
    results: list[Any] = []
    source = topic()
    produce(broker.bootstrap, source, rows())
    for name, before, after in (
        ("undisturbed", (), ()),
        ("killed", ("consumed:700", "flushed:2"), ("mid-batch:3", "checkpoint-before-rename:2")),
    ):
        home, output = homes(name), topic()
        configure(home, broker, source, output, every_records=400)
        for points, last in ((before, PROMOTED_AFTER), (after, RECORDS)):
            for point in points:
                kill_at(launcher, home, point)
            run_up_to(launcher, home, last)
            if last == PROMOTED_AFTER:
                promote(launcher, home)
        header = home.header()
        assert header["models"]["promotions"] == [[PROMOTED_AFTER, "champion", "challenger"]]
        results.append(
            (lines_of(broker, output), kept(header), header["source"]["account"], header["source"]["positions"])
        )
    assert results[0] == results[1]
    lines = results[0][0]
    assert [line["model"] for line in lines] == ["champion"] * 1000 + ["challenger"] * 1400
    assert all(list(line["models"]) == ["challenger"] for line in lines[:PROMOTED_AFTER])
    assert all(list(line["models"]) == ["champion"] for line in lines[PROMOTED_AFTER:])
