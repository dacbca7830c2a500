"""Refits between topics and in a group: once, whatever kills the daemon, and however long they take."""

from __future__ import annotations

import csv
import re
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from streamkernel.daemon.run_state.models import published_entry
from tests.daemon.conftest import Home, Launcher
from tests.daemon.refits import refitted
from tests.kafka.cluster import Cluster
from tests.kafka.learning import section
from tests.kafka.members import Group, end, rows
from tests.kafka.producing import consume, produce
from tests.processes import alive, wait_until

MakeTopic = Callable[..., str]

# Dies between two parts of the window, with the refit begun and nothing of it in the model.
SOLVING = """
from streamkernel import WindowRefit
from streamkernel.daemon.base import crash
from streamkernel.window import refit

parts = refit._FeatureRows.parts

def passed(self):
    for part in parts(self):
        crash.point("solving")
        yield part

refit._FeatureRows.parts = passed
"""
# Takes until it is told to be quick, at first without letting another thread of its process run, as a compiled loop.
SLOW = """
import ctypes, pathlib, time
from streamkernel import WindowRefit
from streamkernel.window import refit

minimize = refit.minimize

def slowly(*given):
    if not pathlib.Path("quick").exists():
        pathlib.Path("at-work").touch()
        ctypes.PyDLL(None).sleep(3)
    while not pathlib.Path("quick").exists():
        time.sleep(0.05)
    return minimize(*given)

refit.minimize = slowly
"""
HISTORY, RECORDS = 700, 900
# In the refit behind the file, behind it, and behind its checkpoint; in one of the topic, and behind it.
KILLS = ("solving:3", "refitted:1", "seam:2", "solving:3", "consumed:150")
# The same, and before either refit.
ALL_KILLS = ("seam:1", *KILLS[:3], "consumed:290", *KILLS[3:])
POLL_MS = 2000
"""Longer than the session of these groups, and shorter than the refits."""


def with_module(home: Path, name: str, text: str, **sections: Any) -> dict[str, Any]:
    """Give the sections of a configuration whose refits a module of its own has a hand in."""
    (home / f"{name}.py").write_text(text)
    (settings,) = (given for step in refitted() for given in step.values())
    return {"model": [{f"{name}.WindowRefit": settings}], "imports": [name], **sections}


class Between:
    """A daemon that learns a file, and then goes on from topic to topic."""

    def __init__(self, home: Home, cluster: Cluster, source: str, predictions: str, transactions: bool) -> None:
        self.home = home
        self._cluster, self._predictions = cluster, predictions
        with (home.folder / "history.csv").open("w", newline="") as file:
            writer = csv.DictWriter(file, ["a", "b", "y"])
            writer.writeheader()
            writer.writerows(rows(HISTORY, RECORDS))
        output = section(cluster.bootstrap, predictions, **({"transactional_id": predictions} if transactions else {}))
        home.configure(
            **with_module(home.folder, "solving", SOLVING),
            source=section(cluster.bootstrap, source, target="y"),
            warm_start={"source": {"kind": "csv", "path": "history.csv", "target": "y"}, "refit": True},
            predictions=output,
            checkpoint={"directory": "out/state", "every_records": 200},
        )

    def to_the_end(self, launcher: Launcher, left: int) -> None:
        done = launcher.call(self.home, "run", "config.yaml", "--max-records", str(left))
        assert done.returncode == 0, done.stderr

    def result(self) -> tuple[Any, ...]:
        header = self.home.header()
        assert header["warm_start"]["done"]
        published = consume(self._cluster.bootstrap, self._predictions)[0]
        return published_entry(header), header["source"]["account"], [record.value for record in published]


@pytest.mark.parametrize(
    ("transactions", "kills"),
    [(True, KILLS), *(pytest.param(each, ALL_KILLS, marks=pytest.mark.long) for each in (True, False))],
    ids=["transactions", "transactions, more kills", "at once"],
)
def test_a_kill_around_a_refit_changes_nothing_that_is_published(
    broker: Cluster,
    topic: MakeTopic,
    homes: Callable[[str], Home],
    launcher: Launcher,
    transactions: bool,
    kills: tuple[str, ...],
) -> None:
    source = topic()
    produce(broker.bootstrap, source, rows(RECORDS))
    undisturbed, killed = (
        Between(homes(name), broker, source, topic(), transactions) for name in ("undisturbed", "killed")
    )
    undisturbed.to_the_end(launcher, HISTORY + RECORDS)
    for point in kills:
        done = launcher.call(killed.home, "run", "config.yaml", STREAMKERNEL_CRASH=point)
        assert done.returncode == -signal.SIGKILL, (point, done.stderr)
    assert killed.home.header()["warm_start"]["done"]
    killed.to_the_end(launcher, RECORDS - killed.home.header()["source"]["account"]["consumed"])
    model, account, published = killed.result()
    assert (model, account, published) == undisturbed.result()
    assert model["n_refits"] == 3 + 3
    assert len(published) == RECORDS


@pytest.fixture
def group(broker: Cluster, topic: MakeTopic, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Group]:
    partitions = getattr(request, "param", 1)
    made = Group(tmp_path, broker, topic(partitions=partitions), partitions)
    source = made.source(options={"max_poll_interval_ms": POLL_MS})
    made.configure(**with_module(tmp_path, "slow", SLOW, source=source))
    yield made
    made.close()


def undisturbed(group: Group, partition: int) -> tuple[Any, ...]:
    """What a daemon without a group, and without a slow solver, comes to."""
    config = yaml.safe_load((group.folder / "config.yaml").read_text())
    group.configure(**{**config, "model": refitted(), "imports": []})
    return group.undisturbed(partition, RECORDS)


def test_a_refit_longer_than_a_poll_may_take_keeps_its_partition(broker: Cluster, group: Group) -> None:
    produce(broker.bootstrap, group.topic, rows(RECORDS))
    first = group.start(str(group.folder))
    first.wait_for(": holding ")
    # Another one comes meanwhile, who would be given the partition of a member that the group puts out.
    second = group.start(str(group.folder))
    wait_until((group.folder / "at-work").exists, "a refit to begin")
    child = group.pid(0)
    second.wait_for("serving metrics")
    wait_until(lambda: second.get("/readyz") == "ready\n", "the other one to join the group of the")
    time.sleep(1.2 * POLL_MS / 1000)
    assert [first.get(path) for path in ("/readyz", "/healthz")] == ["ready\n", "ok\n"]
    (group.folder / "quick").touch()
    group.wait_until_saved(RECORDS)
    assert group.pid(0) == child
    assert float(first.wait_for(r"refitted on its last 300 records in ([\d.]+) s")) > POLL_MS / 1000
    end(second, first)
    assert len(re.findall(": holding ", first.log)) == 1
    assert ": holding " not in second.log
    assert "other hands" not in first.log
    assert group.result(0) == undisturbed(group, 0)


@pytest.mark.long
@pytest.mark.parametrize("group", [2], indirect=True)
def test_a_partition_that_moves_in_the_midst_of_a_refit_is_refitted_by_its_new_holder(
    broker: Cluster, group: Group
) -> None:
    first = group.start(str(group.folder))
    for partition in group.partitions:
        produce(broker.bootstrap, group.topic, rows(RECORDS), partition=partition)
    wait_until((group.folder / "at-work").exists, "a refit to begin")
    first.wait_for("partition 0: reading")
    first.wait_for("partition 1: reading")
    before = [group.pid(partition) for partition in group.partitions]
    second = group.start(str(group.folder))
    wait_until(lambda: second.holds({0}) or second.holds({1}), "a partition to move")
    moved = int(second.holds({1}))
    wait_until(lambda: not alive(before[moved]), "its process to be ended in its refit")
    first.wait_for(f"partition {moved}: did not end within 9 s and is killed")
    assert group.pid(1 - moved) == before[1 - moved]
    (group.folder / "quick").touch()
    group.wait_until_saved(RECORDS)
    assert group.pid(1 - moved) == before[1 - moved]
    end(second, first)
    for partition in group.partitions:
        assert group.result(partition) == undisturbed(group, partition)
