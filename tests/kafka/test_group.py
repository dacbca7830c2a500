"""One model for each partition, whoever learns it: members join, leave, die and freeze."""

from __future__ import annotations

import contextlib
import os
import random
import re
import signal
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import orjson
import pytest
from kafka import KafkaProducer
from prometheus_client.parser import text_string_to_metric_families

from streamkernel.daemon import cli
from tests.daemon.notifications import ServiceManager
from tests.kafka.broker import Broker
from tests.kafka.cluster import Cluster
from tests.kafka.listeners import GUEST, login
from tests.kafka.members import Group, Member, end, rows
from tests.kafka.producing import produce
from tests.processes import alive, wait_until

MakeGroup = Callable[..., Group]

DEADLY = """
import os
from river import dummy

class Deadly(dummy.PriorClassifier):
    def predict_proba_one(self, x):
        if "die" in x:
            os.abort()
        return super().predict_proba_one(x)
"""


@pytest.fixture
def make_group(broker: Cluster, topic: Callable[..., str], tmp_path: Path) -> Iterator[MakeGroup]:
    made: list[Group] = []

    def make(partitions: int) -> Group:
        made.append(Group(tmp_path, broker, topic(partitions=partitions), partitions))
        return made[-1]

    yield make
    for group in made:
        group.close()


class Stream:
    """Puts records into all partitions, a few at a time, until it is told to come to the end."""

    def __init__(self, broker: Cluster, group: Group) -> None:
        self._broker, self._group = broker, group
        self.count = 0
        self._ending = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        producer = KafkaProducer(bootstrap_servers=self._broker.bootstrap)
        while not self._ending.wait(0.2):
            for row in map(orjson.dumps, rows(100, self.count)):
                for partition in self._group.partitions:
                    producer.send(self._group.topic, row, partition=partition)
            producer.flush()
            self.count += 100
        producer.close()

    def end(self) -> int:
        """Stop, and give how many records each partition has."""
        self._ending.set()
        self._thread.join()
        return self.count


def test_a_partition_is_learned_once_whoever_holds_it(broker: Cluster, make_group: MakeGroup) -> None:
    group = make_group(3)
    stream = Stream(broker, group)
    try:
        first = group.start()
        group.wait_until_saved(1)
        assert first.holds({0, 1, 2})
        before = [group.pid(partition) for partition in group.partitions]

        # A second member joins: one partition moves, and nobody disturbs the other two.
        second = group.start()
        wait_until(lambda: sum(group.pid(one) not in (0, before[one]) for one in group.partitions) == 1, "one to move")
        (moved,) = (one for one in group.partitions if group.pid(one) != before[one])
        kept = [one for one in group.partitions if one != moved]
        assert second.holds({moved})
        assert first.holds(kept)
        second.wait_for(f"partition {moved}: reading")

        # One process dies: it is started again, and nobody else notices.
        now = [group.pid(partition) for partition in group.partitions]
        os.kill(now[kept[0]], signal.SIGKILL)
        first.wait_for(f"partition {kept[0]}: its process was killed by SIGKILL; it is started again in 1 s")
        wait_until(lambda: group.pid(kept[0]) not in (0, now[kept[0]]), "it to be started again")

        # The first member dies: its children die with it, and the second one takes over.
        orphans = [group.pid(one) for one in kept]
        first.signal(signal.SIGKILL)
        wait_until(lambda: not any(map(alive, orphans)), "the children of a dead member to die")
        wait_until(lambda: second.holds({0, 1, 2}), "the second member to take over")
        for one in kept:
            second.wait_for(f"partition {one}: reading")
        assert group.pid(moved) == now[moved]
        wait_until(lambda: second.get("/readyz") == "ready\n", "the second member to be ready")
        assert second.get("/healthz") == "ok\n"
        metrics = second.get("/metrics")
    finally:
        count = stream.end()
    group.wait_until_saved(count)
    saved = dict.fromkeys(group.partitions, count)
    wait_until(lambda: broker.committed(group.name) == saved, "the offsets to be committed")
    end(second)
    assert len(re.findall(r"partition \d: SIGTERM came", second.log)) == 3
    group.assert_undisturbed(count)

    families = {family.name: family for family in text_string_to_metric_families(metrics)}
    learned = families["streamkernel_records_learned"]
    assert {sample.labels["partition"] for sample in learned.samples} == {"0", "1", "2"}
    assert families["streamkernel_group_partitions"].samples[0].value == 3
    lag = families["streamkernel_consumer_lag_records"].samples
    assert sorted(tuple(sorted(sample.labels.items())) for sample in lag) == [
        (("partition", str(one)), ("topic", group.topic)) for one in group.partitions
    ]


@pytest.mark.long
def test_a_stopped_member_keeps_its_partition_until_it_goes_on(broker: Cluster, make_group: MakeGroup) -> None:
    group = make_group(2)
    stream = Stream(broker, group)
    try:
        first = group.start()
        group.wait_until_saved(1)
        second = group.start()
        wait_until(lambda: first.holds({0}) and second.holds({1}), "each to have its share")
        second.wait_for("partition 1: reading")

        # The group gives its partition away, but its child goes on with it: so the other member's child waits.
        first.signal(signal.SIGSTOP)
        child = group.pid(0)
        wait_until(lambda: second.holds({0, 1}), "the group to give the partition away")
        second.wait_for(rf"partition 0: waiting for \S+, held by process {child}\b")
        assert second.get("/readyz") == "not ready\n"
        wait_until(lambda: second.state_of(0) == f"waiting for process {child}", "the status to say so")
        reached = group.saved(0)
        wait_until(lambda: group.saved(0) > reached, "the child to go on while its member stands still")

        # The member finds out that it is out of the group: its child is killed, and the other one's goes on.
        first.signal(signal.SIGCONT)
        first.wait_for("partition 0: another member may have it now. What")
        wait_until(lambda: not alive(child), "the child to be killed")
        wait_until(lambda: first.holds({0}) or first.holds({1}), "the member to be given its share again")
        wait_until(lambda: group.pid(0) != child, "the partition to be gone on with")
    finally:
        count = stream.end()
    group.wait_until_saved(count)
    end(first, second)
    group.assert_undisturbed(count)


@pytest.mark.long
def test_a_failure_of_one_partition_ends_the_member_with_a_sentence(broker: Cluster, make_group: MakeGroup) -> None:
    group = make_group(2)
    produce(broker.bootstrap, group.topic, rows(300), partition=1)
    member = group.start()
    wait_until(lambda: group.saved(1) == 300, "the good records to be learned")
    member.wait_for("partition 0: reading")
    produce(broker.bootstrap, group.topic, [b"no JSON"] * 1000, partition=0)
    assert member.wait() == 1
    said = member.log.splitlines()
    assert re.search(r"error +partition 0: the first \d+ records are all dead letters", said[-1])
    assert sum("are all dead letters" in line for line in said) == 1
    assert any("partition 1: SIGTERM came; everything up to record 300 is saved" in line for line in said)


def test_check_tries_the_group_and_disturbs_nobody(
    local_broker: Broker, make_group: MakeGroup, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    group = make_group(3)
    monkeypatch.chdir(group.folder)
    produce(local_broker.bootstrap, group.topic, rows(50), partition=2)
    group.undisturbed(2, 50)
    (group.folder / "out").mkdir()
    (group.folder / "undisturbed/out/state").rename(group.folder / "out/state")
    assert cli.main(["check", "config.yaml"]) == 0
    said = capsys.readouterr().out
    assert f"group: group {group.name} on kafka topic {group.topic} at {local_broker.bootstrap}: each partition" in said
    assert re.search(r"^checkpoint: out/state/partition-2, a run continues from number \d, record 50$", said, re.M)
    assert "source.order" not in said
    with local_broker.admin() as admin:
        assert group.name not in {found["group_id"] for found in admin.list_groups()}

    local_broker.allow(GUEST[0], "read", "describe", topic=group.topic)
    group.configure(source=group.source(bootstrap_servers=local_broker.sasl, options=login()))
    assert cli.main(["check", "config.yaml"]) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert line.endswith("the user guest is not authorized to use the group: grant it Read on the group")


@pytest.mark.long
def test_mode_predict_serves_each_partition_its_own_model(broker: Cluster, make_group: MakeGroup) -> None:
    group = make_group(2)
    for partition in group.partitions:
        produce(broker.bootstrap, group.topic, rows(500, 100 * partition), partition=partition)
    learning = group.start()
    group.wait_until_saved(500)
    end(learning)
    learned = [group.result(partition)[0] for partition in group.partitions]
    assert learned[0] != learned[1]

    (group.folder / "out").rename(group.folder / "learned")
    group.configure(mode="predict", serve_from="learned/state/partition-{partition}")
    for partition in group.partitions:
        produce(broker.bootstrap, group.topic, rows(100, 700), partition=partition)
    serving = group.start()
    group.wait_until_saved(600)
    end(serving)
    for partition in group.partitions:
        model, account, _, predictions, _ = group.result(partition)
        assert model == learned[partition]
        assert account["learned"] == 0
        assert predictions.count(b"\n") == 600


@pytest.mark.long
def test_whatever_happens_to_the_members(broker: Cluster, make_group: MakeGroup) -> None:
    group = make_group(4)
    stream = Stream(broker, group)
    draw = random.Random(5)
    here = [group.start()]
    frozen: list[Member] = []
    done: Counter[str] = Counter()
    try:
        group.wait_until_saved(1)
        for _ in range(40):
            what = draw.choice(["join", "kill", "end", "freeze", "thaw", "kill a child"])
            if what == "join" and len(here) < 3:
                here.append(group.start())
                here[-1].wait_for("serving metrics")
            elif what == "kill" and len(here) > 1:
                here.pop(draw.randrange(len(here))).close()
            elif what == "end" and len(here) > 1:
                member = here.pop(draw.randrange(len(here)))
                member.signal(signal.SIGTERM)
                assert member.wait() == 0, member.log
            elif what == "freeze" and len(here) > 1:
                frozen.append(here.pop(draw.randrange(len(here))))
                frozen[-1].signal(signal.SIGSTOP)
            elif what == "thaw" and frozen:
                here.append(frozen.pop(0))
                here[-1].signal(signal.SIGCONT)
            elif what == "kill a child":
                with contextlib.suppress(ProcessLookupError):
                    os.kill(group.pid(draw.choice(group.partitions)) or 2**22, signal.SIGKILL)
            else:
                continue
            done[what] += 1
            time.sleep(draw.choice([0.2, 1.0, 4.0]))
    finally:
        for member in frozen:
            member.signal(signal.SIGCONT)
        count = stream.end()
    group.wait_until_saved(count)
    end(*here, *frozen)
    group.assert_undisturbed(count)
    assert set(done) == {"join", "kill", "end", "freeze", "thaw", "kill a child"}


@pytest.mark.long
def test_a_record_that_kills_its_process_costs_one_partition_some_seconds(
    broker: Cluster, make_group: MakeGroup
) -> None:
    group = make_group(2)
    (group.folder / "deadly.py").write_text(DEADLY)
    group.configure(model=["deadly.Deadly"], imports=["deadly"])
    produce(broker.bootstrap, group.topic, [*rows(50), {"die": True, "y": "in"}, *rows(50)], partition=0)
    member = group.start(str(group.folder))
    # The other partition is learned meanwhile, by one and the same process.
    wait_until(lambda: "was killed by SIGABRT" in member.log, "the first death")
    produce(broker.bootstrap, group.topic, rows(100), partition=1)
    wait_until(lambda: group.saved(1) == 100, "the other partition")
    wait_until(lambda: group.saved(0) == 101, "the end of the partition")
    end(member)
    assert member.log.count("partition 0: its process was killed by SIGABRT") == 4
    assert "partition 1: its process" not in member.log
    _, account, _, _, dead = group.result(0)
    assert (account["consumed"], account["learned"], account["dead"]) == (101, 100, 1)
    assert b'"reason":"kills_process"' in dead.replace(b" ", b"")


@pytest.mark.long
def test_a_member_is_ready_when_its_partitions_are_read(
    broker: Cluster, topic: Callable[..., str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = topic(partitions=2)
    for partition in (0, 1):
        produce(broker.bootstrap, name, rows(100), partition=partition)
    group = Group(tmp_path, broker, name, 2)
    with ServiceManager() as manager:
        monkeypatch.setenv("NOTIFY_SOCKET", manager.name)
        monkeypatch.setenv("WATCHDOG_USEC", "2000000")
        member = group.start()
        try:
            manager.wait_for("READY=1")
            assert member.holds({0, 1})
            for partition in group.partitions:
                variables = Path(f"/proc/{group.pid(partition)}/environ").read_bytes()
                assert b"PYTHONPATH=" in variables
                assert not any(given in variables for given in (b"NOTIFY_SOCKET=", b"WATCHDOG_"))
            manager.wait_for(lambda lines: any(line.startswith("STATUS=partitions 0, 1 of ") for line in lines))
            manager.wait_for(lambda lines: lines.count("WATCHDOG=1") >= 3)
            member.signal(signal.SIGTERM)
            manager.wait_for("STOPPING=1")
            assert member.wait() == 0
        finally:
            group.close()
    assert manager.told.count("READY=1") == 1
