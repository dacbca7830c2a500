"""A daemon on a topic that is killed, again and again: its restarts learn each record once."""

from __future__ import annotations

import random
import signal
import uuid
from collections.abc import Callable
from pathlib import Path

import pytest

from streamkernel.daemon.run_state.models import published_entry
from tests.daemon.conftest import Home, Launcher
from tests.kafka.cluster import Cluster
from tests.kafka.learning import configure, predicted, rings
from tests.kafka.producing import produce

Topics = Callable[..., str]


class TestKilled:
    """The daemon is killed, at any moment and as often as it may be: nothing is lost and nothing is learned twice."""

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
        consumed = (
            where.header()["source"]["account"]["consumed"] if any(Path(where.folder, "out/state").glob("*.skc")) else 0
        )
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
        consumed = killed.header()["source"]["account"]["consumed"]
        assert 0 < consumed < self.RECORDS
        self.finish(killed, launcher)
        assert killed.header()["source"]["account"]["learned"] == self.RECORDS
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
        assert published_entry(killed.header()) == published_entry(undisturbed.header())
        assert [line["probabilities"] for line in killed.lines("out/predictions.jsonl")] == [
            line["probabilities"] for line in undisturbed.lines("out/predictions.jsonl")
        ]

    def in_one_partition(
        self, broker: Cluster, homes: Callable[[str], Home], name: str, places: list[tuple[int, int]]
    ) -> Home:
        """Configure a run over the same records, in the order in which they were learned."""
        from tests.kafka.producing import consume

        held = consume(broker.bootstrap, name)
        one = f"{name}-in-one"
        broker.create_topic(one, 1)
        produce(broker.bootstrap, one, [held[partition][offset].value for partition, offset in places])
        where = homes("undisturbed")
        configure(where, broker.bootstrap, one)
        return where

    def test_what_comes_after_latest_is_not_lost_before_the_first_checkpoint(
        self, broker: Cluster, topic: Topics, home: Home, launcher: Launcher
    ) -> None:
        """Where the end of the topic was at the very first start is written down before anything is learned."""
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
        assert [position[1:] for position in home.header()["source"]["positions"]] == [[0, 30], [1, 0]]
        produce(broker.bootstrap, name, rings(50), partition=lambda number: number % 2)
        assert launcher.call(home, "run", "config.yaml", "--max-records", "50").returncode == 0
        assert sorted(predicted(home)) == [*((0, at) for at in range(30, 55)), *((1, at) for at in range(25))]
