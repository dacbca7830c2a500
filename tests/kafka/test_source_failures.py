"""The daemon on a topic, and what may happen to the topic, to the broker, or between them."""

from __future__ import annotations

import re
import urllib.error
import urllib.request
from collections.abc import Callable

import pytest

from tests.daemon.conftest import Home, Launcher
from tests.kafka.broker import Broker
from tests.kafka.cluster import Cluster
from tests.kafka.learning import configure, learned, predicted, rings, stop
from tests.kafka.producing import produce
from tests.processes import wait_until

Topics = Callable[..., str]


def outages(log: str) -> list[str]:
    return [
        line.split(": ", 1)[1][:16] for line in log.splitlines() if re.search("no broker answers|answers again", line)
    ]


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
        learned(home, 700)
        log = stop(running)
        assert outages(log) == ["no broker answer", "a broker answers"]
        assert predicted(home) == [(0, offset) for offset in range(700)]
        assert home.header()["source"]["account"]["learned"] == 700

    @pytest.mark.parametrize("end", ["kill", pytest.param("stop", marks=pytest.mark.long)])
    def test_it_goes_away_in_the_middle(
        self, own_broker: Broker, topic: Topics, home: Home, launcher: Launcher, end: str
    ) -> None:
        name = topic(partitions=2, on=own_broker)
        stream = rings(4000)
        produce(own_broker.bootstrap, name, stream[:1500], partition=lambda number: number % 2)
        configure(home, own_broker.bootstrap, name)
        running = launcher.start(home, "run", "config.yaml")
        learned(home, 1500)
        getattr(own_broker, end)()
        running.wait_for("no broker answers \\(.*connection refused\\): trying again until one does")
        own_broker.start()
        produce(own_broker.bootstrap, name, stream[1500:], partition=lambda number: number % 2)
        learned(home, 4000)
        log = stop(running)
        assert outages(log) == ["no broker answer", "a broker answers"]
        assert sorted(predicted(home)) == [(one, offset) for one in range(2) for offset in range(2000)]
        assert "error" not in log

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
            assert (
                not list((home.folder / "out/state").glob("*.skc"))
                or home.header()["source"]["account"]["consumed"] == 0
            )
        else:
            running = launcher.start(home, "run", "config.yaml")
            learned(home, 1000)
            ends()
            running.wait_for("no broker answers")
            stop(running)
            assert home.header()["source"]["account"]["learned"] == 1000

    def test_what_is_shown_goes_on(self, own_broker: Broker, topic: Topics, home: Home, launcher: Launcher) -> None:
        name = topic(partitions=2, on=own_broker)
        produce(own_broker.bootstrap, name, rings(1000))
        configure(home, own_broker.bootstrap, name)
        config = home.config.read_text().replace("metrics: null", "metrics: {port: 0}")
        home.config.write_text(config)
        running = launcher.start(home, "run", "config.yaml")
        address = running.wait_for(r"serving metrics at (http://\S+)/metrics")[1]
        learned(home, 1000)
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
        learned(home, 800)
        broker.delete_topic(name)
        if anew:
            broker.create_topic(name)
        ended = running.wait()
        assert ended.returncode == 1
        told = "deleted and created again while it was read" if anew else "the topic was deleted while it was read"
        assert told in ended.stderr.splitlines()[-1]
        assert "everything up to record 800 is saved" in ended.stderr
        again = launcher.call(home, "run", "config.yaml")
        assert again.returncode == 1
        told = (
            "the topic was deleted and created again since the checkpoint" if anew else "the cluster has no such topic"
        )
        assert told in again.stderr.splitlines()[-1]
        assert home.header()["source"]["account"]["learned"] == 800

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
