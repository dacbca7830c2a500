"""The order of the partitions on disk: torn, damaged, refused, and always the same again."""

from __future__ import annotations

import errno
import logging
import os
import random
from pathlib import Path

import pytest
from fake_kafka import message

from streamkernel.connectors.kafka.base.messages import Messages
from streamkernel.connectors.kafka.reading import order, order_log
from streamkernel.connectors.kafka.reading.buffers import Buffers, PartitionBatch
from streamkernel.connectors.kafka.reading.order import ArrivalOrder, LoggedOrder
from streamkernel.connectors.kafka.reading.order_log import OrderEntry, OrderLog


def buffers_of(begins: dict[int, int]) -> Buffers:
    buffers = Buffers()
    for partition, first in begins.items():
        buffers.note(partition, first, None)
    return buffers


def put(buffers: Buffers, partition: int, first: int, end: int) -> None:
    messages = [message(offset, b"{}", partition=partition) for offset in range(first, end)]
    buffers.put(PartitionBatch.of(partition, Messages.of(messages)))


def logged(path: Path, begins: dict[int, int], positions: dict[int, int] | None = None, kept: int = 1) -> LoggedOrder:
    places = begins if positions is None else positions
    return LoggedOrder(OrderLog(path, kept), places, {one: (first, first) for one, first in begins.items()})


def drained(taker: LoggedOrder | ArrivalOrder, buffers: Buffers, most: int) -> list[tuple[int, int]]:
    """Everything that can be taken, one (partition, offset) a record."""
    records = []
    while (batch := taker.take(buffers, most)) is not None:
        records += [(batch.partition, offset) for offset in range(batch.first, batch.end)]
    return records


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "order.log"


class TestArrival:
    def test_partitions_have_their_turns_and_stay_apart(self) -> None:
        buffers = buffers_of({0: 0, 1: 0, 2: 0})
        put(buffers, 0, 0, 25)
        put(buffers, 2, 7, 17)
        taker = ArrivalOrder()
        taken = []
        while (batch := taker.take(buffers, 10)) is not None:
            taken.append((batch.partition, batch.first, batch.end))
        assert taken == [(0, 0, 10), (2, 7, 17), (0, 10, 20), (0, 20, 25)]


class TestLog:
    def test_a_torn_last_line_is_forgotten(self, path: Path, caplog: pytest.LogCaptureFixture) -> None:
        log = OrderLog(path, 1)
        log.open({0: 0, 1: 0})
        log.append(OrderEntry(0, 0, 5))
        log.append(OrderEntry(1, 0, 9))
        log.close()
        whole = path.read_bytes()
        for length in range(len(OrderEntry(0, 0, 5).to_line()), len(whole)):
            path.write_bytes(whole[:length])
            assert log.open({0: 0, 1: 0}) == [OrderEntry(0, 0, 5)]
            log.close()
        assert caplog.text == ""

    def test_what_stands_behind_damage_is_not_used(self, path: Path, caplog: pytest.LogCaptureFixture) -> None:
        lines = [OrderEntry(0, 0, 5).to_line(), b"1 0 9 00000000\n", OrderEntry(0, 5, 8).to_line()]
        path.write_bytes(b"".join(lines))
        assert OrderLog(path, 1).open({0: 0, 1: 0}) == [OrderEntry(0, 0, 5)]
        assert [record.message for record in caplog.records] == [
            f"{path} is damaged in line 2: the lines after it are not used"
        ]

    @pytest.mark.parametrize(
        "line", [b"", b"0 0 5", b"a b c d", b"0 0 5 zz", b"\xff\x00", b"0  0 5 %08x" % 0, b"0_0 0 5 0", b"-1"]
    )
    def test_no_line_but_an_exact_one_is_taken(self, line: bytes) -> None:
        with pytest.raises(ValueError, match="is torn or damaged"):
            OrderEntry.from_line(line)

    def test_a_log_that_begins_too_late_says_so(self, path: Path, caplog: pytest.LogCaptureFixture) -> None:
        path.write_bytes(OrderEntry(0, 5, 8).to_line())
        assert OrderLog(path, 1).open({0: 4}) == []
        assert path.read_bytes() == b""
        assert "does not reach back to the checkpoint" in caplog.text

    def test_a_new_beginning_forgets_the_log(self, path: Path) -> None:
        path.write_bytes(OrderEntry(0, 0, 8).to_line())
        assert OrderLog(path, 1).open({}) == []
        assert path.read_bytes() == b""

    @pytest.mark.parametrize("kept", [1, 2, 3])
    def test_it_reaches_back_to_the_oldest_checkpoint_kept(self, path: Path, kept: int) -> None:
        log = OrderLog(path, kept)
        log.open({0: 0})
        for number in range(10):
            log.append(OrderEntry(0, 10 * number, 10 * number + 10))
            log.saved({0: 10 * number + 10})
            oldest = max(0, 10 * (number + 2 - kept))
            copy = path.with_name("copy")
            copy.write_bytes(path.read_bytes())
            replayed = OrderLog(copy, kept).open({0: oldest})
            assert [(entry.first, entry.end) for entry in replayed] == [
                (first, first + 10) for first in range(oldest, 10 * number + 10, 10)
            ]
        assert len(path.read_bytes().splitlines()) == kept - 1

    def test_a_line_is_on_the_disk_before_it_is_used(self, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        synced = []
        real = os.fsync
        monkeypatch.setattr(order_log.os, "fsync", lambda file: (synced.append(path.read_bytes()), real(file)))
        log = OrderLog(path, 1)
        path.touch()
        log.open({0: 0})
        synced.clear()
        log.append(OrderEntry(0, 0, 5))
        assert synced == [OrderEntry(0, 0, 5).to_line()]


class TestLogged:
    def test_a_restart_repeats_the_order(self, path: Path) -> None:
        """Whatever arrives first, and however it is cut into polls."""
        draw = random.Random(1)
        first = logged(path, {0: 0, 1: 10, 2: 5})
        buffers = buffers_of({0: 0, 1: 0, 2: 0})
        places, taken = {0: 0, 1: 10, 2: 5}, []
        for _ in range(40):
            partition, count = draw.randrange(3), draw.randint(1, 30)
            put(buffers, partition, places[partition], places[partition] + count)
            places[partition] += count
            for _ in range(draw.randrange(3)):
                batch = first.take(buffers, draw.randint(1, 20))
                if batch is not None:
                    taken += [(batch.partition, offset) for offset in range(batch.first, batch.end)]
        first.close()
        for seed in range(5):
            # A checkpoint after some of them, then everything there is, in another order.
            draw = random.Random(seed)
            done = draw.randrange(len(taken))
            positions = {0: 0, 1: 10, 2: 5} | {partition: offset + 1 for partition, offset in taken[:done]}
            copy = path.with_name(f"copy{seed}")
            copy.write_bytes(path.read_bytes())
            second = logged(copy, positions)
            buffers = buffers_of({0: 0, 1: 0, 2: 0})
            for partition in draw.sample([0, 1, 2], 3):
                put(buffers, partition, positions[partition], places[partition])
            again = drained(second, buffers, draw.randint(1, 50))
            assert again[: len(taken) - done] == taken[done:]
            begins = {0: 0, 1: 10, 2: 5}
            everything = [(one, offset) for one in places for offset in range(begins[one], places[one])]
            assert sorted(taken[:done] + again) == everything

    def test_it_waits_for_the_partition_whose_turn_it_was(self, path: Path) -> None:
        path.write_bytes(OrderEntry(1, 0, 3).to_line() + OrderEntry(0, 0, 2).to_line())
        taker = logged(path, {0: 0, 1: 0})
        buffers = buffers_of({0: 0, 1: 0})
        put(buffers, 0, 0, 9)
        assert taker.take(buffers, 5) is None
        assert taker.wanted == 1
        put(buffers, 1, 0, 2)
        assert drained(taker, buffers, 5) == [(1, 0), (1, 1)]
        put(buffers, 1, 2, 9)
        assert drained(taker, buffers, 5)[:3] == [(1, 2), (0, 0), (0, 1)]

    def test_what_is_gone_is_not_waited_for(self, path: Path) -> None:
        path.write_bytes(OrderEntry(1, 0, 3).to_line() + OrderEntry(1, 3, 8).to_line() + OrderEntry(0, 0, 2).to_line())
        taker = logged(path, {0: 0, 1: 0})
        buffers = buffers_of({0: 0, 1: 0})
        put(buffers, 0, 0, 2)
        put(buffers, 1, 5, 6)  # retention removed what came before, and compaction what comes behind
        buffers.note(1, 9, 9)
        assert drained(taker, buffers, 5) == [(1, 5), (0, 0), (0, 1)]

    def test_while_the_disk_is_full_nothing_is_taken(
        self, path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
    ) -> None:
        clock = [100.0]
        monkeypatch.setattr(order.time, "monotonic", lambda: clock[0])
        real = os.pwrite

        def torn(file: int, data: bytes, offset: int) -> int:
            if len(data) > 3:
                return real(file, data[:3], offset)
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

        taker = logged(path, {0: 0, 1: 0})
        buffers = buffers_of({0: 0, 1: 0})
        put(buffers, 0, 0, 10)
        with monkeypatch.context() as full:
            full.setattr(order_log.os, "pwrite", torn)
            for _ in range(3):
                assert taker.take(buffers, 5) is None
                assert taker.held
                clock[0] += 1.5
                assert not taker.held
        assert [record.levelno for record in caplog.records] == [logging.ERROR]
        assert "no record is read until it can," in caplog.text
        assert drained(taker, buffers, 5) == [(0, offset) for offset in range(10)]
        assert path.read_bytes() == OrderEntry(0, 0, 10).to_line()

    def test_a_log_that_cannot_be_shortened_goes_on(
        self, path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
    ) -> None:
        taker = logged(path, {0: 0, 1: 0})
        buffers = buffers_of({0: 0, 1: 0})
        put(buffers, 0, 0, 10)
        drained(taker, buffers, 5)

        def refused(*_: object) -> None:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

        with monkeypatch.context() as full:
            full.setattr(order_log.os, "fsync", refused)
            taker.saved({0: 10})
        assert "cannot be shortened: No space left on device" in caplog.text
        put(buffers, 0, 10, 12)
        drained(taker, buffers, 5)
        assert path.read_bytes() == OrderEntry(0, 0, 10).to_line() + OrderEntry(0, 10, 12).to_line()
        taker.saved({0: 12})
        assert path.read_bytes() == b""
