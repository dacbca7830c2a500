"""Each line once, on a real broker: lines of killed processes that come late, and daemons that are killed."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import time
from collections.abc import Callable
from typing import Any

import pytest

from connectors.kafka.writing.session import Broken, Line
from connectors.kafka.writing.sink import KafkaSink
from streamkernel.daemon.base.errors import CheckpointError
from tests.daemon.conftest import Home, Launcher
from tests.kafka.broker import Broker
from tests.kafka.cluster import Cluster
from tests.kafka.producing import consume, produce
from tests.kafka.sinking import at, opened, put, standing, with_session

MakeTopic = Callable[..., str]


class TestLateLines:
    """A process that is killed may have a request under way, which the broker takes up whenever it comes to it.

    Here it is still alive, so that it is known when its request comes: at the worst moment, after its successor has
    read the topic.
    """

    @pytest.fixture
    def both(self, broker: Cluster, topic: MakeTopic) -> tuple[KafkaSink, KafkaSink, str]:
        """The sink of a process that is to die, and that of its successor, which goes on from the same checkpoint."""
        name = topic()
        first = opened(broker, name)
        put(first, [at(0), at(0, 1)])
        mark = first.flush()
        return first, opened(broker, name, mark), name

    @pytest.mark.parametrize("late", [1, 5])
    def test_that_come_first_are_found(
        self, broker: Cluster, both: tuple[KafkaSink, KafkaSink, str], late: int
    ) -> None:
        first, second, name = both
        put(first, [at(offset) for offset in range(1, 1 + late)])
        first.flush()
        put(second, [at(offset) for offset in range(1, 10)])
        second.flush()
        assert standing(broker, name) == {0: [*range(10)], 1: [0]}
        second.close()
        first.close()

    def test_of_another_record_are_not_taken_for_the_successors(
        self, broker: Cluster, both: tuple[KafkaSink, KafkaSink, str]
    ) -> None:
        # One line each, with the same number: for the broker the second is the first once more.
        first, second, name = both
        put(first, [at(1, 1)])
        first.flush()
        put(second, [at(1), at(1, 1), at(2)])
        second.flush()
        assert standing(broker, name) == {0: [0, 1, 2], 1: [0, 1]}
        second.close()
        first.close()

    @pytest.mark.parametrize("late", [1, 5])
    def test_that_come_second_are_refused(self, broker: Cluster, topic: MakeTopic, late: int) -> None:
        name = topic()
        first, session = with_session(broker, name)
        put(first, [at(0), at(0, 1)])
        second = opened(broker, name, first.flush())
        put(second, [at(offset) for offset in range(1, 8)])
        second.flush()
        receipts = [session.send(Line(b"{}", at(20 + offset))) for offset in range(late)]
        session.wait(5.0)
        refused = [receipt.exception is not None for receipt in receipts]
        # A single line counts as the successor's first one, come once more: it is acknowledged, and not written.
        assert refused == ([False] if late == 1 else [True] * late)
        put(second, [at(8), at(9)])
        second.flush()
        assert standing(broker, name) == {0: [*range(10)], 1: [0]}
        second.close()
        session.abandon()

    def test_a_number_the_broker_has_forgotten_is_none(self, broker: Cluster, topic: MakeTopic) -> None:
        # As after a day without a line, or when retention has removed them all.
        name = topic()
        with opened(broker, name) as sink:
            put(sink, map(at, range(5)))
            mark = sink.flush()
        assert isinstance(mark, dict)
        mark["producer"] = [mark["producer"][0] + 1_000_000, 0]
        with opened(broker, name, mark) as sink:
            put(sink, map(at, range(5, 9)))
            mark = sink.flush()
        with opened(broker, name, mark) as sink:
            put(sink, map(at, range(9, 12)))
        assert standing(broker, name) == {0: [*range(12)]}

    def test_two_that_both_go_on_do_not_double_a_line(
        self, broker: Cluster, both: tuple[KafkaSink, KafkaSink, str]
    ) -> None:
        # Which no lock keeps apart, because somebody copied the checkpoints.
        first, second, name = both
        for offset in range(1, 6):
            put(second, [at(offset)])
            second.flush()
            put(first, [at(offset)])
            first.flush()
        assert standing(broker, name) == {0: [*range(6)], 1: [0]}
        second.close()
        first.close()


def test_a_session_breaks_where_a_line_came_in_between(broker: Cluster, topic: MakeTopic) -> None:
    name = topic()
    first = opened(broker, name)
    mark = first.flush()
    second, session = with_session(broker, name, mark)
    put(first, [at(1, 1)])
    first.flush()
    with pytest.raises(Broken, match="a line of an earlier process came in between"):
        session.send_verified(Line(b"{}", at(1)))
    second.close()
    first.close()


RECORDS = 6000


@pytest.fixture(params=[None, "daemon"], ids=["at once", "transactions"])
def daemon(
    request: pytest.FixtureRequest, broker: Cluster, topic: MakeTopic, tmp_path: Any
) -> tuple[Home, dict[str, str]]:
    """A daemon between topics, not started: two partitions in, three out."""
    names = {"in": topic(partitions=2), "predictions": topic(partitions=3), "dead_letters": topic()}
    draw = random.Random(5)
    rows: list[Any] = [
        b"{bad" if draw.random() < 0.03 else {"a": draw.gauss(0, 1), "y": draw.random() < 0.5} for _ in range(RECORDS)
    ]
    produce(broker.bootstrap, names["in"], rows, partition=lambda number: number % 2)
    home = Home(tmp_path)

    def output(key: str) -> dict[str, Any]:
        made: dict[str, Any] = {"kind": "kafka", "topic": names[key], "bootstrap_servers": broker.bootstrap}
        return made if request.param is None else {**made, "transactional_id": names[key]}

    home.configure(
        source={
            "kind": "kafka",
            "topic": names["in"],
            "bootstrap_servers": broker.bootstrap,
            "target": "y",
            "target_type": "bool",
        },
        model=["river.preprocessing.StandardScaler", "river.linear_model.LogisticRegression"],
        predictions=output("predictions"),
        dead_letters=output("dead_letters"),
    )
    return home, names


def check_account(broker: Cluster, home: Home, names: dict[str, str]) -> None:
    """Find a line, and only one, for each record, and each partition in order."""
    account = home.header()["account"]
    assert account["consumed"] == RECORDS == account["predicted"] + account["dead"]
    written = [standing(broker, names[key]) for key in ("predictions", "dead_letters")]
    for partition in (0, 1):
        for lines in written:
            assert lines[partition] == sorted(set(lines[partition]))
        assert sorted(written[0][partition] + written[1][partition]) == [*range(RECORDS // 2)]
    assert sum(len(lines[partition]) for lines in written[1:] for partition in (0, 1)) == account["dead"]


def run_to_the_end(launcher: Launcher, home: Home) -> None:
    consumed = 0
    with contextlib.suppress(CheckpointError):  # all may have been killed before the first one
        consumed = home.header()["account"]["consumed"]
    done = launcher.call(home, "run", "config.yaml", "--max-records", str(RECORDS - consumed))
    assert done.returncode == 0, done.stderr


class TestKilledDaemons:
    @pytest.mark.parametrize("daemon", [None], indirect=True)
    def test_what_is_predicted_is_what_an_undisturbed_run_says(
        self,
        broker: Cluster,
        daemon: tuple[Home, dict[str, str]],
        launcher: Launcher,
        topic: MakeTopic,
    ) -> None:
        home, names = daemon
        source = {
            "kind": "kafka",
            "topic": names["in"],
            "bootstrap_servers": broker.bootstrap,
            "target": "y",
            "target_type": "bool",
        }
        told = []
        for kills in (0, 2):
            name = topic()
            predictions = {"kind": "kafka", "topic": name, "bootstrap_servers": broker.bootstrap}
            home.configure(
                source={**source, "partitions": [0]},
                predictions=predictions,
                dead_letters={"kind": "jsonl", "path": f"dead-{kills}.jsonl"},
                checkpoint={"directory": f"state-{kills}", "every_records": 400},
            )
            for number in range(kills):
                done = launcher.call(home, "run", "config.yaml", STREAMKERNEL_CRASH=f"consumed:{300 + 100 * number}")
                assert done.returncode == -signal.SIGKILL, done.stderr
            done = launcher.call(
                home,
                "run",
                "config.yaml",
                "--max-records",
                str(RECORDS // 2 - (home.header(f"state-{kills}")["account"]["consumed"] if kills else 0)),
            )
            assert done.returncode == 0, done.stderr
            told.append([record.value for record in consume(broker.bootstrap, name)[0]])
        assert len(told[0]) > 2800
        assert told[0] == told[1]


@pytest.mark.parametrize("turns", [1, pytest.param(10, marks=pytest.mark.long)])
@pytest.mark.parametrize("transactional_id", [None, "daemon"], ids=["at once", "transactions"])
def test_a_broker_that_stands_still_while_the_daemon_is_killed(
    own_broker: Broker,
    topic: MakeTopic,
    home: Home,
    launcher: Launcher,
    transactional_id: str | None,
    turns: int,
) -> None:
    """What a killed process had sent waits in the broker's socket, and comes when its successor comes."""
    records = 12_000 * turns
    source, name = topic(on=own_broker), topic(on=own_broker)
    produce(own_broker.bootstrap, source, [{"a": number % 7, "y": number % 2 == 0} for number in range(records)])
    home.configure(
        source={
            "kind": "kafka",
            "topic": source,
            "bootstrap_servers": own_broker.bootstrap,
            "target": "y",
            "target_type": "bool",
        },
        model=["river.linear_model.LogisticRegression"],
        predictions={
            "kind": "kafka",
            "topic": name,
            "bootstrap_servers": own_broker.bootstrap,
            "transactional_id": transactional_id,
        },
        dead_letters=None,
    )
    running = launcher.start(home, "run", "config.yaml")
    draw = random.Random(7)
    for _ in range(turns):
        running.wait_for("reading kafka topic")
        time.sleep(draw.uniform(0.05, 0.4))
        own_broker.pause()
        os.kill(running.pid, signal.SIGKILL)
        running.wait()
        running = launcher.start(home, "run", "config.yaml")
        time.sleep(0.5)
        own_broker.resume()
    until(lambda: home.header()["account"]["consumed"] == records)
    running.signal(signal.SIGTERM)
    assert running.wait().returncode == 0
    assert standing(own_broker, name) == {0: [*range(records)]}


def until(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.05)
