"""The account of late labels, against a plain twin: every record and every label once, however they are cut."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from streamkernel.connectors.ports import Record
from streamkernel.daemon.labels.join import LabelJoin
from streamkernel.daemon.labels.snapshot import dump, restore
from tests.daemon.labels_twin import Advancing, Counting, Daemon, Twin, balances, event

KEYS = st.sampled_from(["p", "q", "r", "s", "t"])
KINDS = st.sampled_from(["good"] * 12 + ["bad", "bad", "blank", "fault"])
RECORD = st.tuples(st.just(False), st.none() | KEYS, st.sampled_from([None] * 4 + ["a", "b"]), KINDS)
LABEL = st.tuples(st.just(True), st.sampled_from([None]) | KEYS, st.sampled_from([None, "a", "b", "b"]), KINDS)
EVENTS = st.lists(RECORD | LABEL, max_size=60)
MODELS = st.sampled_from([Counting, Advancing])


def made(events: list[tuple[bool, str | None, str | None, str]]) -> list[Record]:
    return [event(late, number, key, y, kind) for number, (late, key, y, kind) in enumerate(events)]


@given(EVENTS, st.integers(1, 4), MODELS, st.lists(st.integers(1, 9), min_size=1), st.booleans())
@example([(True, "p", "a", "bad"), (False, "p", None, "good"), (True, "p", "b", "good")], 2, Advancing, [9], False)
def test_it_does_what_the_twin_does_however_it_is_cut(
    events: list[Any], limit: int, model: type[Counting], cuts: list[int], restarted: bool
) -> None:
    """Also where each chunk begins with what a checkpoint kept of the one before."""
    left = made(events)
    twin, daemon = Twin(limit, model()), Daemon(limit, model())
    for record in left:
        twin.take(record)
    while left:
        cut = cuts[len(left) % len(cuts)]
        assert daemon.take(left[:cut]) == len(left[:cut])
        left = left[cut:]
        if restarted:
            header, blob = dump(daemon.join)
            again = LabelJoin("id", "y", 3600.0, limit)
            restore(again, header, blob)
            assert again.label_next == daemon.join.label_next
            assert again.positions == daemon.join.positions
            second = dump(again)
            assert second[1] == blob
            assert second[0] == {**header, "clock": second[0]["clock"]}
            daemon.join = daemon.processor.stage.join = again
    daemon.agrees_with(twin)
    if events:
        assert daemon.join.label_next is (not events[-1][0])


@given(EVENTS, st.integers(1, 4), MODELS, st.lists(st.integers(1, 6), min_size=1))
def test_a_chunk_that_is_stopped_goes_on_where_it_ended(
    events: list[Any], limit: int, model: type[Counting], stops: list[int]
) -> None:
    left = made(events)
    twin, daemon = Twin(limit, model()), Daemon(limit, model())
    for record in left:
        twin.take(record)
    for stop in stops:
        done = daemon.take(left[:20], stop_after=stop)
        balances(daemon.join, daemon.processor.counts)
        left = left[done:]
    while left:
        daemon.take(left[:7])
        left = left[7:]
    daemon.agrees_with(twin)


@given(st.lists(st.tuples(st.floats(0.0, 50.0), st.lists(RECORD | LABEL, max_size=8)), max_size=12), st.integers(1, 30))
def test_the_account_holds_while_time_passes(chunks: list[Any], limit: int) -> None:
    now = [1e9]
    join = LabelJoin("id", "y", 60.0, limit, clock=lambda: now[0])
    daemon = Daemon(limit, Counting(), join)
    arrived: dict[str, float] = {}
    number = 0
    for seconds, events in chunks:
        now[0] += seconds
        records = [event(late, number + i, key, y, kind) for i, (late, key, y, kind) in enumerate(events)]
        number += len(records)
        daemon.take(records)
        balances(join, daemon.processor.counts)
        came = {key for late, key, _, _ in events if not late}
        for key, entry in join.pending:
            if key in came and entry.arrived == pytest.approx(now[0] - 1e9, abs=1e-3):
                arrived[key] = now[0]  # also where one of that key was given up and forgotten within the chunk
            arrived.setdefault(key, now[0])
            assert entry.arrived == pytest.approx(arrived[key] - 1e9, abs=1e-3)
            assert now[0] - arrived[key] <= 60.0 + 2e-3
        arrived = {key: time for key, time in arrived.items() if key in join.pending}


def take(daemon: Daemon, *events: tuple[bool, str | None, str | None]) -> None:
    first = daemon.processor.taken
    daemon.take([event(late, first + i, key, y, "good") for i, (late, key, y) in enumerate(events)])


class TestTime:
    """Seconds in which the daemon ran: what another clock says is never asked."""

    def daemon(self) -> tuple[Daemon, list[float]]:
        now = [5000.0]
        return Daemon(10, Counting(), LabelJoin("id", "y", 60.0, 10, clock=lambda: now[0])), now

    def test_what_waits_too_long_expires_and_its_label_is_unmatched(self) -> None:
        daemon, now = self.daemon()
        take(daemon, (False, "p", None), (True, "q", "a"))
        now[0] += 60.0
        take(daemon, (False, "r", None))
        assert (daemon.join.counts.expired, daemon.join.counts.unmatched) == (0, 0)
        now[0] += 1.0
        take(daemon, (True, "p", "a"), (True, "r", "b"), (False, "q", None))
        account = daemon.join.counts
        assert (account.expired, account.matched, account.unmatched) == (1, 1, 2)
        assert [key for key, _ in daemon.join.pending] == ["q"]
        balances(daemon.join, daemon.processor.counts)

    def test_a_restart_goes_on_with_the_same_time_whatever_the_clocks_say(self) -> None:
        daemon, now = self.daemon()
        take(daemon, (False, "p", None))
        now[0] += 50.0
        take(daemon, (False, "q", None))
        for elsewhere in (0.0, -3600.0, 1e12):
            header, blob = dump(daemon.join)
            now = [elsewhere]
            join = LabelJoin("id", "y", 60.0, 10, clock=lambda now=now: now[0])
            restore(join, header, blob)
            daemon = Daemon(10, daemon.model, join)
            take(daemon, (False, None, None))
            assert daemon.join.counts.expired == 0
            assert daemon.join.now == pytest.approx(50.0)
        now[0] += 11.0
        take(daemon, (True, "p", "a"), (True, "q", "a"))
        assert (daemon.join.counts.expired, daemon.join.counts.matched) == (1, 1)

    def test_a_clock_that_goes_back_stands_still(self) -> None:
        daemon, now = self.daemon()
        take(daemon, (False, "p", None))
        now[0] -= 1e6
        take(daemon, (True, "p", "a"))
        assert daemon.join.counts.matched == 1
        assert daemon.join.now == 0.0


def test_a_smaller_limit_lets_the_oldest_go() -> None:
    daemon = Daemon(10, Counting())
    take(daemon, *((False, f"k{i}", None) for i in range(8)), *((True, f"e{i}", "a") for i in range(6)))
    header, blob = dump(daemon.join)
    join = LabelJoin("id", "y", 3600.0, 3)
    restore(join, header, blob)
    daemon = Daemon(3, Counting(), join)
    take(daemon, (False, None, None))
    assert [key for key, _ in join.pending] == ["k5", "k6", "k7"]
    assert [key for key, _ in join.waiting] == ["e3", "e4", "e5"]
    assert (join.counts.expired, join.counts.unmatched) == (5, 3)
    assert join.counts.balances(3, 3)


def test_the_label_of_a_number_finds_its_record_however_it_was_written() -> None:
    daemon = Daemon(10, Counting())
    records = [event(False, i, None, None, "good")._replace(x={"id": key}) for i, key in enumerate((17.0, 18, "19"))]
    labels = [event(True, i, None, "a", "good")._replace(x={"id": key}) for i, key in enumerate((17, "18", 19.0))]
    daemon.take([*records, *labels])
    assert daemon.join.counts.matched == 3


def wide(number: int, late: bool) -> Record:
    """A record of some hundred bytes, or a label for one that will never come."""
    key = f"nobody {number}" if late else f"k{number}"
    record = event(late, number, key, 300 * "a" if late else None, "good")
    return record if late else record._replace(x={**record.x, "text": "x" * (number % 200)})


class TestBytes:
    """What waits is bounded by its bytes as well: the oldest make room, and how a stream was cut shows in nothing."""

    def take(self, cuts: list[int], again: bool = False) -> Daemon:
        daemon = Daemon(1000, Counting(), self.join())
        left = [wide(number, number % 3 == 2) for number in range(90)]
        while left:
            cut = cuts[len(left) % len(cuts)]
            daemon.take(left[:cut])
            left = left[cut:]
            if again:
                header, blob = dump(daemon.join)
                join = self.join()
                restore(join, header, blob)
                assert [held.n_bytes for held in (join.pending, join.waiting, join.settled)] == [
                    held.n_bytes for held in (daemon.join.pending, daemon.join.waiting, daemon.join.settled)
                ]
                daemon.join = daemon.processor.stage.join = join
        return daemon

    def join(self) -> LabelJoin:
        return LabelJoin("id", "y", 3600.0, 1000, max_bytes=3000)

    @pytest.mark.parametrize("again", [False, True])
    def test_the_oldest_make_room(self, again: bool) -> None:
        one = self.take([90], again)
        assert one.join.counts.expired > 10
        assert one.join.counts.unmatched > 10
        assert 1000 < one.join.pending.n_bytes <= 3000
        assert one.join.waiting.n_bytes <= 3000
        balances(one.join, one.processor.counts)
        for cuts in ([1], [7, 2], [20]):
            other = self.take(cuts, again)
            assert other.join.counts == one.join.counts
            assert list(map(str, other.join.settled)) == list(map(str, one.join.settled))
            assert [key for key, _ in other.join.pending] == [key for key, _ in one.join.pending]

    def test_one_is_kept_however_large(self) -> None:
        daemon = Daemon(1000, Counting(), LabelJoin("id", "y", 3600.0, 1000, max_bytes=10))
        daemon.take([wide(0, False), wide(1, False)])
        assert [key for key, _ in daemon.join.pending] == ["k1"]

    def test_what_is_given_up_takes_nothing_any_more(self) -> None:
        daemon = self.take([5])
        for held in (daemon.join.pending, daemon.join.waiting, daemon.join.settled):
            while len(held):
                held.pop_oldest()
            assert held.n_bytes == 0
