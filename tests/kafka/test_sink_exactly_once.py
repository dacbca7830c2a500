"""Each line once, on a real broker: lines of killed processes that come late, and daemons that are killed."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from streamkernel.connectors.kafka.writing.session import Line
from streamkernel.connectors.kafka.writing.sink import KafkaSink
from tests.kafka.cluster import Cluster
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
