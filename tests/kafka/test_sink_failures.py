"""The sink where brokers fail: what waits, what is said, and that no line is lost or double."""

from __future__ import annotations

import contextlib
import logging
import os
import signal
import time
from collections.abc import Callable

import pytest

from streamkernel.connectors.kafka.writing import delivery
from streamkernel.connectors.kafka.writing import sink as module
from streamkernel.connectors.kafka.writing.sink import KafkaSink
from streamkernel.connectors.ports import OutageError
from tests.chaos.proxy import Proxy
from tests.daemon.conftest import Home, Launcher
from tests.kafka.broker import Broker
from tests.kafka.learning import section, stop
from tests.kafka.listeners import address
from tests.kafka.producing import produce
from tests.kafka.sinking import Writing, at, finish, opened, put, standing
from tests.ports import reserved_port

MakeTopic = Callable[..., str]

BOTH = pytest.mark.parametrize("transactional_id", [None, "me"], ids=["at once", "transactions"])


@pytest.fixture
def _impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(delivery, "SILENT_SECONDS", 1.0)
    monkeypatch.setattr(module, "PATIENCE_SECONDS", 0.5)
    monkeypatch.setattr(module, "OPEN_SECONDS", 1.0)


def assert_all(found: dict[int, list[int]], count: int, transactional_id: str | None) -> None:
    """Every line is there, and with transactions once."""
    lines = found[0] if transactional_id else sorted({*found[0]})
    assert lines == [*range(count)]


@BOTH
@pytest.mark.usefixtures("_impatient")
class TestOutages:
    def test_a_broker_that_is_killed_and_comes_again(
        self,
        own_broker: Broker,
        topic: MakeTopic,
        transactional_id: str | None,
        caplog: pytest.LogCaptureFixture,
    ) -> None:
        caplog.set_level(logging.INFO, "streamkernel.connectors")
        name = topic(2, on=own_broker)
        with opened(own_broker, name, transactional_id=transactional_id) as sink:
            writing = Writing(sink)
            time.sleep(0.5)
            own_broker.kill()
            time.sleep(1.5)
            assert sink.waiting > 200
            own_broker.start()
            time.sleep(1)
            own_broker.kill()  # and once more, with no time to notice
            own_broker.start()
            time.sleep(1)
            writing.end()
        assert writing.outages >= 1
        assert_all(standing(own_broker, name), writing.written, transactional_id)
        ours = [record for record in caplog.records if record.name.startswith("streamkernel.connectors")]
        told = [record.levelname for record in ours]
        # Each outage that is noticed is told once and ended once; how many are, of two that may be too short and a
        # broker that may stumble as it starts, is the machine's pace.
        assert told == max(len(told) // 2, 1) * ["WARNING", "INFO"], caplog.messages
        assert "): lines wait in memory" in ours[0].getMessage()

    @pytest.mark.parametrize("seconds", [1.5, pytest.param(33, marks=pytest.mark.long)])
    def test_a_broker_that_stands_still(
        self, own_broker: Broker, topic: MakeTopic, transactional_id: str | None, seconds: float
    ) -> None:
        name = topic(2, on=own_broker)
        with opened(own_broker, name, transactional_id=transactional_id) as sink:
            writing = Writing(sink)
            time.sleep(0.5)
            own_broker.pause()
            time.sleep(seconds)
            assert sink.waiting > 20
            own_broker.resume()
            time.sleep(1)
            writing.end()
        assert writing.outages >= 1
        assert_all(standing(own_broker, name), writing.written, transactional_id)

    def test_a_broker_that_is_away_when_it_is_closed(
        self, own_broker: Broker, topic: MakeTopic, transactional_id: str | None
    ) -> None:
        name = topic(on=own_broker)
        sink = opened(own_broker, name, transactional_id=transactional_id)
        put(sink, [at(0)])
        mark = finish(sink)
        own_broker.pause()
        put(sink, map(at, range(1, 10)))
        begin = time.monotonic()
        with pytest.raises(OutageError):
            sink.flush()
        with contextlib.nullcontext() if transactional_id else pytest.raises(OutageError):
            sink.close()
        assert time.monotonic() - begin < 10
        own_broker.resume()
        with opened(own_broker, name, mark, transactional_id=transactional_id) as again:
            put(again, map(at, range(1, 15)))
            finish(again)
        found = standing(own_broker, name)
        # Without transactions, the broker may have lines that it never acknowledged.
        assert (found if transactional_id else {0: sorted({*found[0]})}) == {0: [*range(15)]}


@pytest.mark.usefixtures("_impatient")
class TestTransactionsInOutages:
    """Whatever step of a transaction meets with a broker that is away, it is taken when the broker is there again."""

    @pytest.fixture
    def sink(self, own_broker: Broker, own_network: Proxy, topic: MakeTopic) -> tuple[KafkaSink, str]:
        name = topic(2, on=own_broker)
        sink = KafkaSink(name, address(own_network.port), transactional_id="me")
        sink.open()
        put(sink, map(at, range(5)))
        while sink.waiting:
            sink.write((), ())
            time.sleep(0.01)
        return sink, name

    @pytest.mark.parametrize("step", ["a partition joins", "the end"])
    def test_connections_are_refused(
        self, sink: tuple[KafkaSink, str], own_broker: Broker, own_network: Proxy, step: str
    ) -> None:
        writing, name = sink
        own_network.refuse()
        if step == "a partition joins":
            put(writing, [at(0, 1)])
        else:
            writing.flush()
            writing.commit()
        for _ in range(3):
            with pytest.raises(OutageError, match="connection refused"):
                writing.flush()
        own_network.flow()
        finish(writing)
        writing.close()
        assert standing(own_broker, name) == {0: [*range(5)], **({1: [0]} if step == "a partition joins" else {})}


@pytest.mark.parametrize(
    ("state", "transactional_id"),
    [
        ("dead", None),
        pytest.param("stopped", "me", marks=pytest.mark.long),
        pytest.param("dead", "me", marks=pytest.mark.long),
        pytest.param("stopped", None, marks=pytest.mark.long),
    ],
)
def test_sigterm_ends_a_daemon_whose_broker_is_away(
    own_broker: Broker,
    topic: MakeTopic,
    home: Home,
    launcher: Launcher,
    transactional_id: str | None,
    state: str,
) -> None:
    source, name = topic(on=own_broker), topic(on=own_broker)
    produce(own_broker.bootstrap, source, [{"a": number % 7, "y": number % 2 == 0} for number in range(20_000)])
    home.configure(
        source=section(own_broker.bootstrap, source, target="y", target_type="bool"),
        model=["river.linear_model.LogisticRegression"],
        predictions=section(own_broker.bootstrap, name, transactional_id=transactional_id or "none"),
        dead_letters=None,
    )
    running = launcher.start(home, "run", "config.yaml")
    running.wait_for("records: progressive loss")
    (own_broker.kill if state == "dead" else own_broker.pause)()
    time.sleep(1)
    begin = time.monotonic()
    os.kill(running.pid, signal.SIGTERM)
    ended = running.wait()
    assert time.monotonic() - begin < 10
    assert ended.returncode in (0, 1)
    assert "is saved: a restart continues there" in ended.stderr
    if state == "dead":
        own_broker.start()
    own_broker.resume()
    consumed = home.header()["source"]["account"]["consumed"]
    ended = launcher.call(home, "run", "config.yaml", "--max-records", str(20_000 - consumed))
    assert ended.returncode == 0, ended.stderr
    assert_all(standing(own_broker, name), 20_000, transactional_id)


def test_sigterm_ends_a_daemon_that_has_found_no_broker_yet(home: Home, launcher: Launcher) -> None:
    nowhere = address(reserved_port())
    home.configure(
        source=section(nowhere, "clicks", target="y"),
        model=["river.linear_model.LogisticRegression"],
        predictions=section(nowhere, "predictions"),
        dead_letters=section(nowhere, "dead"),
    )
    running = launcher.start(home, "run", "config.yaml")
    running.wait_for("clicks at .*: no broker answers")
    log = stop(running)
    assert log.count("SIGTERM came before the run started") == 1
    assert "Traceback" not in log
    assert not [*(home.folder / "out/state").glob("checkpoint-*")]
