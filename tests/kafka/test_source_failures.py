"""The daemon on a topic, and everything that may happen to it, to the broker, or between them."""

from __future__ import annotations

import itertools
import random
import re
import signal
import threading
import time
import urllib.error
import urllib.request
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.daemon.conftest import Home, Launcher, Running, home, homes, launcher  # noqa: F401
from tests.kafka.broker import Broker
from tests.kafka.cluster import Cluster
from tests.kafka.distribution import Distribution
from tests.kafka.producing import produce

# ruff: noqa: F811 - pytest takes fixtures by their names
Topics = Callable[..., str]
SECONDS = 60


def rings(count: int, seed: int = 0) -> list[dict[str, Any]]:
    """Two rings, as records with a number."""
    draw = random.Random(seed)
    points = [(draw.gauss(0, 1), draw.gauss(0, 1)) for _ in range(count)]
    return [{"id": number, "a": a, "b": b, "y": str(a * a + b * b < 1.2)} for number, (a, b) in enumerate(points)]


def configure(where: Home, servers: str, topic: str, **source: Any) -> None:
    where.configure(
        source={"kind": "kafka", "topic": topic, "bootstrap_servers": servers, "target": "y", **source},
        model=[
            {"river.compose.Discard": {"args": ["id"]}},
            {"streamkernel.KernelClassifier": {"seed": 1, "max_features": 128}},
        ],
        # Lines are on the disk with the next checkpoint.
        checkpoint={"directory": "out/state", "every_records": 500, "every_seconds": 0.3},
    )


def predicted(where: Home) -> list[tuple[int, int]]:
    """Partition and offset of each prediction, in order."""
    return [
        (line["position"]["partition"], line["position"]["offset"]) for line in where.lines("out/predictions.jsonl")
    ]


def wait_until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + SECONDS
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def learnt(where: Home, count: int) -> None:
    """Wait until so many predictions stand in the file."""
    path = where.folder / "out/predictions.jsonl"
    wait_until(lambda: path.exists() and path.read_bytes().count(b"\n") >= count)


def stop(running: Running) -> str:
    """End a daemon by SIGTERM, within the ten seconds it may take, and return what it logged."""
    running.signal(signal.SIGTERM)
    last = threading.Timer(10, running.signal, [signal.SIGKILL])
    last.start()
    try:
        ended = running.wait()
    finally:
        last.cancel()
    assert ended.returncode == 0, f"it had to be killed:\n{ended.stderr}"
    return ended.stderr


def outages(log: str) -> list[str]:
    return [
        line.split(": ", 1)[1][:16] for line in log.splitlines() if re.search("no broker answers|answers again", line)
    ]


@pytest.fixture(scope="module")
def patient(tmp_path_factory: pytest.TempPathFactory, installed: Distribution) -> Iterator[Broker]:
    """One broker that several tests take away, one after the other."""
    with Broker(tmp_path_factory.mktemp("patient") / "broker", installed=installed) as broker:
        yield broker


@pytest.fixture
def own_broker(patient: Broker) -> Broker:
    """The same, well again."""
    patient.resume()
    if not patient.alive:
        patient.start()
    return patient


class TestBroker:
    """The broker goes away, and comes back."""

    def test_it_is_not_there_at_the_start(
        self, own_broker: Broker, topic: Topics, home: Home, launcher: Launcher
    ) -> None:
        name = topic(on=own_broker)
        produce(own_broker.bootstrap, name, rings(700))
        own_broker.stop()
        configure(home, own_broker.bootstrap, name)
        running = launcher.start(home, "run", "config.yaml")
        running.wait_for("no broker answers \\(connection refused\\): trying again until one does")
        own_broker.start()
        learnt(home, 700)
        log = stop(running)
        assert outages(log) == ["no broker answer", "a broker answers"]
        assert predicted(home) == [(0, offset) for offset in range(700)]
        assert home.header()["account"]["learnt"] == 700

    @pytest.mark.parametrize("end", ["kill", pytest.param("stop", marks=pytest.mark.long)])
    def test_it_goes_away_in_the_middle(
        self, own_broker: Broker, topic: Topics, home: Home, launcher: Launcher, end: str
    ) -> None:
        name = topic(partitions=2, on=own_broker)
        stream = rings(4000)
        produce(own_broker.bootstrap, name, stream[:1500], partition=lambda number: number % 2)
        configure(home, own_broker.bootstrap, name)
        running = launcher.start(home, "run", "config.yaml")
        learnt(home, 1500)
        getattr(own_broker, end)()
        running.wait_for("no broker answers \\(.*connection refused\\): trying again until one does")
        own_broker.start()
        produce(own_broker.bootstrap, name, stream[1500:], partition=lambda number: number % 2)
        learnt(home, 4000)
        log = stop(running)
        assert outages(log) == ["no broker answer", "a broker answers"]
        assert sorted(predicted(home)) == [(one, offset) for one in range(2) for offset in range(2000)]
        assert "error" not in log

    def test_it_stalls(self, own_broker: Broker, topic: Topics, home: Home, launcher: Launcher) -> None:
        """Its connections stay open and nobody answers: no error tells of it."""
        name = topic(on=own_broker)
        stream = rings(2000)
        produce(own_broker.bootstrap, name, stream[:1000])
        configure(home, own_broker.bootstrap, name)
        running = launcher.start(home, "run", "config.yaml")
        learnt(home, 1000)
        own_broker.pause()
        running.wait_for("no broker answers \\(no answer\\): trying again until one does")
        own_broker.resume()
        running.wait_for("a broker answers again")
        produce(own_broker.bootstrap, name, stream[1000:])
        learnt(home, 2000)
        log = stop(running)
        assert outages(log) == ["no broker answer", "a broker answers"]
        assert predicted(home) == [(0, offset) for offset in range(2000)]

    @pytest.mark.parametrize(
        "state",
        [
            "down at the start",
            "stalled",
            pytest.param("down", marks=pytest.mark.long),
            pytest.param("stalled at the start", marks=pytest.mark.long),
        ],
    )
    def test_a_stop_does_not_wait_for_it(
        self, own_broker: Broker, topic: Topics, home: Home, launcher: Launcher, state: str
    ) -> None:
        name = topic(on=own_broker)
        produce(own_broker.bootstrap, name, rings(1000))
        configure(home, own_broker.bootstrap, name, options={"group_id": "tools"})
        ends = own_broker.kill if state.startswith("down") else own_broker.pause
        if state.endswith("start"):
            ends()
            running = launcher.start(home, "run", "config.yaml")
            running.wait_for("no broker answers")
            stop(running)
            assert not list((home.folder / "out/state").glob("*.skc")) or home.header()["account"]["consumed"] == 0
        else:
            running = launcher.start(home, "run", "config.yaml")
            learnt(home, 1000)
            ends()
            running.wait_for("no broker answers")
            stop(running)
            assert home.header()["account"]["learnt"] == 1000

    def test_what_is_shown_goes_on(self, own_broker: Broker, topic: Topics, home: Home, launcher: Launcher) -> None:
        name = topic(partitions=2, on=own_broker)
        produce(own_broker.bootstrap, name, rings(1000))
        configure(home, own_broker.bootstrap, name)
        config = home.config.read_text().replace("metrics: null", "metrics: {port: 0}")
        home.config.write_text(config)
        running = launcher.start(home, "run", "config.yaml")
        address = running.wait_for(r"serving metrics at (http://\S+)/metrics")[1]
        learnt(home, 1000)
        lag = 'streamkernel_consumer_lag_records{{partition="{}",topic="{}"}} {:.1f}'

        def shown(path: str) -> str:
            with urllib.request.urlopen(f"{address}/{path}", timeout=10) as answer:
                return str(answer.read().decode())

        wait_until(lambda: all(lag.format(one, name, 0) in shown("metrics") for one in range(2)))
        own_broker.kill()
        running.wait_for("no broker answers")
        assert lag.format(0, name, 0) in shown("metrics")
        for path in ("healthz", ""):
            assert shown(path)
        with pytest.raises(urllib.error.HTTPError, match="503") as not_ready:
            shown("readyz")
        with not_ready.value as answer:
            assert re.fullmatch(rf"kafka topic {name} at \S+: no broker answers \(.*\)\n", answer.read().decode())
        stop(running)


class TestTopic:
    """What stands in the topic, or its name, goes away."""

    @pytest.mark.parametrize("anew", [False, True])
    def test_it_is_deleted(self, broker: Cluster, topic: Topics, home: Home, launcher: Launcher, anew: bool) -> None:
        name = topic()
        produce(broker.bootstrap, name, rings(800))
        configure(home, broker.bootstrap, name)
        running = launcher.start(home, "run", "config.yaml")
        learnt(home, 800)
        broker.delete_topic(name)
        if anew:
            broker.create_topic(name)
        ended = running.wait()
        assert ended.returncode == 1
        told = "deleted and made anew while it was read" if anew else "the topic was deleted while it was read"
        assert told in ended.stderr.splitlines()[-1]
        assert "everything up to record 800 is saved" in ended.stderr
        again = launcher.call(home, "run", "config.yaml")
        assert again.returncode == 1
        told = "the topic was deleted and made anew since the checkpoint" if anew else "the cluster has no such topic"
        assert told in again.stderr.splitlines()[-1]
        assert home.header()["account"]["learnt"] == 800

    def test_retention_passes_while_the_daemon_is_down(
        self, broker: Cluster, topic: Topics, home: Home, launcher: Launcher
    ) -> None:
        name = topic()
        produce(broker.bootstrap, name, rings(3000))
        configure(home, broker.bootstrap, name)
        assert launcher.call(home, "run", "config.yaml", "--max-records", "700").returncode == 0
        broker.delete_records(name, {0: 1000})
        ended = launcher.call(home, "run", "config.yaml", "--max-records", "700")
        assert ended.returncode == 1
        assert (
            "partition 0: offsets 700 to 999 (300 of them) were removed by retention" in ended.stderr.splitlines()[-1]
        )
        configure(home, broker.bootstrap, name, on_gap="skip")
        ended = launcher.call(home, "run", "config.yaml", "--max-records", "2000")
        assert ended.returncode == 0
        assert (
            "offsets 700 to 999 (300 of them) were removed by retention before they were read: they are" in ended.stderr
        )
        assert predicted(home) == [(0, offset) for offset in (*range(700), *range(1000, 3000))]

    def test_another_topic_is_not_taken_for_it(
        self, broker: Cluster, topic: Topics, home: Home, launcher: Launcher
    ) -> None:
        first, second = topic(), topic()
        for name in (first, second):
            produce(broker.bootstrap, name, rings(500))
        configure(home, broker.bootstrap, first)
        assert launcher.call(home, "run", "config.yaml", "--max-records", "500").returncode == 0
        configure(home, broker.bootstrap, second)
        ended = launcher.call(home, "run", "config.yaml")
        assert ended.returncode == 1
        assert f"source.topic is '{first}' in the checkpoint and '{second}' in the configuration" in ended.stderr


class TestKilled:
    """The daemon is killed, at any moment and as often as it may be: nothing is lost and nothing is learnt twice."""

    RECORDS = 6000

    @pytest.fixture(scope="class")
    @staticmethod
    def filled(broker: Cluster) -> dict[int, str]:
        """Topics of one and of three partitions with the same records."""
        names = {partitions: f"killed-{partitions}-{uuid.uuid4().hex[:8]}" for partitions in (1, 3)}
        for partitions, name in names.items():
            broker.create_topic(name, partitions)
            # Not in turns: how the partitions meet is up to the network.
            shares = [number % 7 % partitions for number in range(TestKilled.RECORDS)]
            produce(broker.bootstrap, name, rings(TestKilled.RECORDS), partition=shares.__getitem__, batch_size=20_000)
        return names

    def kill(self, where: Home, launcher: Launcher, seed: int, times: int) -> None:
        draw = random.Random(seed)
        for _ in range(times):
            count = draw.randint(400, 1000)
            crash = draw.choice([*[f"consumed:{count}"] * 3, "mid-batch:5", "checkpoint-before-rename:1"])
            ended = launcher.call(where, "run", "config.yaml", "--max-records", "1100", STREAMKERNEL_CRASH=crash)
            assert ended.returncode == -signal.SIGKILL, ended.stderr

    def finish(self, where: Home, launcher: Launcher) -> str:
        consumed = where.header()["account"]["consumed"] if (where.folder / "out/state").exists() else 0
        ended = launcher.call(where, "run", "config.yaml", "--max-records", str(self.RECORDS - consumed))
        assert ended.returncode == 0, ended.stderr
        return ended.stderr

    @pytest.mark.parametrize(("partitions", "order"), [(1, "arrival"), (3, "logged"), (3, "arrival")])
    def test_it_ends_as_if_it_had_not_been(
        self,
        broker: Cluster,
        filled: dict[int, str],
        homes: Callable[[str], Home],
        launcher: Launcher,
        partitions: int,
        order: str,
    ) -> None:
        killed = homes("killed")
        configure(killed, broker.bootstrap, filled[partitions], order=order)
        self.kill(killed, launcher, seed=partitions, times=6)
        consumed = killed.header()["account"]["consumed"]
        assert 0 < consumed < self.RECORDS
        self.finish(killed, launcher)
        assert killed.header()["account"]["learnt"] == self.RECORDS
        places = predicted(killed)
        assert len(set(places)) == len(places) == self.RECORDS
        if order == "arrival" and partitions > 1:
            return
        if partitions == 1:
            undisturbed = homes("undisturbed")
            configure(undisturbed, broker.bootstrap, filled[partitions], order=order)
        else:
            # Another run meets the partitions in another order; the same one over a topic of one partition does not.
            undisturbed = self.in_one_partition(broker, homes, filled[partitions], places)
        self.finish(undisturbed, launcher)
        assert killed.header()["model"] == undisturbed.header()["model"]
        assert [line["probabilities"] for line in killed.lines("out/predictions.jsonl")] == [
            line["probabilities"] for line in undisturbed.lines("out/predictions.jsonl")
        ]

    def in_one_partition(
        self, broker: Cluster, homes: Callable[[str], Home], name: str, places: list[tuple[int, int]]
    ) -> Home:
        """Configure a run over the same records, in the order in which they were learnt."""
        from tests.kafka.producing import consume

        held = consume(broker.bootstrap, name)
        one = f"{name}-in-one"
        broker.create_topic(one, 1)
        produce(broker.bootstrap, one, [held[partition][offset].value for partition, offset in places])
        where = homes("undisturbed")
        configure(where, broker.bootstrap, one)
        return where

    def test_the_newest_checkpoint_is_broken_too(
        self, broker: Cluster, filled: dict[int, str], homes: Callable[[str], Home], launcher: Launcher
    ) -> None:
        """The order is known back to the oldest checkpoint there is."""
        where = homes("broken")
        configure(where, broker.bootstrap, filled[3], order="logged")
        ended = launcher.call(where, "run", "config.yaml", STREAMKERNEL_CRASH="consumed:3300")
        assert ended.returncode == -signal.SIGKILL
        before = predicted(where)
        for newest in sorted(where.folder.glob("out/state/*.skc"))[-2:]:
            newest.write_bytes(newest.read_bytes()[:-1])
        consumed = where.header()["account"]["consumed"]
        assert consumed < len(before)
        log = self.finish(where, launcher)
        assert "does not reach back" not in log
        places = predicted(where)
        assert places[: len(before)] == before
        assert len(set(places)) == len(places) == self.RECORDS

    def test_what_comes_after_latest_is_not_lost_before_the_first_checkpoint(
        self, broker: Cluster, topic: Topics, home: Home, launcher: Launcher
    ) -> None:
        """Where the end of the topic was at the very first start is written down before anything is learnt."""
        name = topic()
        produce(broker.bootstrap, name, rings(300))
        configure(home, broker.bootstrap, name, start="latest")
        home.config.write_text(home.config.read_text().replace("every_seconds: 0.3", "every_seconds: 60"))
        running = launcher.start(home, "run", "config.yaml", STREAMKERNEL_CRASH="consumed:100")
        running.wait_for("reading kafka topic")
        produce(broker.bootstrap, name, rings(250))
        assert running.wait().returncode == -signal.SIGKILL
        produce(broker.bootstrap, name, rings(250))
        assert launcher.call(home, "run", "config.yaml", "--max-records", "500").returncode == 0
        assert predicted(home) == [(0, offset) for offset in range(300, 800)]

    @pytest.mark.parametrize("end", [signal.SIGKILL, pytest.param(signal.SIGTERM, marks=pytest.mark.long)])
    def test_the_beginning_of_an_idle_topic_is_kept(
        self, broker: Cluster, topic: Topics, home: Home, launcher: Launcher, end: signal.Signals
    ) -> None:
        """No record comes while the first daemon runs, and the next one must not miss those that come meanwhile."""
        name = topic(partitions=2)
        produce(broker.bootstrap, name, rings(30))
        configure(home, broker.bootstrap, name, start="latest")
        running = launcher.start(home, "run", "config.yaml")
        running.wait_for("reading kafka topic")
        running.signal(end)
        running.wait()
        assert [position[1:] for position in home.header()["positions"]] == [[0, 30], [1, 0]]
        produce(broker.bootstrap, name, rings(50), partition=lambda number: number % 2)
        assert launcher.call(home, "run", "config.yaml", "--max-records", "50").returncode == 0
        assert sorted(predicted(home)) == [*((0, at) for at in range(30, 55)), *((1, at) for at in range(25))]

    def test_a_gap_in_a_topic_that_was_idle_is_told(
        self, broker: Cluster, topic: Topics, home: Home, launcher: Launcher
    ) -> None:
        name = topic()
        configure(home, broker.bootstrap, name)
        running = launcher.start(home, "run", "config.yaml")
        running.wait_for("reading kafka topic")
        stop(running)
        produce(broker.bootstrap, name, rings(100))
        broker.delete_records(name, {0: 60})
        ended = launcher.call(home, "run", "config.yaml")
        assert ended.returncode == 1
        assert "partition 0: offsets 0 to 59 (60 of them) were removed by retention" in ended.stderr.splitlines()[-1]

    @pytest.mark.long
    def test_kills_from_outside_at_any_moment(
        self, broker: Cluster, filled: dict[int, str], homes: Callable[[str], Home], launcher: Launcher
    ) -> None:
        killed, undisturbed = homes("killed"), homes("undisturbed")
        for where in (killed, undisturbed):
            configure(where, broker.bootstrap, filled[1])
        draw = random.Random(7)
        for _ in itertools.takewhile(lambda _: not self.done(killed), range(100)):
            running = launcher.start(killed, "run", "config.yaml", "--max-records", str(self.RECORDS))
            time.sleep(draw.uniform(0.3, 1.5))
            running.signal(signal.SIGKILL)
            running.wait()
        if not self.done(killed):
            self.finish(killed, launcher)
        self.finish(undisturbed, launcher)
        assert killed.result() == undisturbed.result()

    def done(self, where: Home) -> bool:
        state = Path(where.folder, "out/state")
        return any(state.glob("*.skc")) and where.header()["account"]["consumed"] == self.RECORDS
