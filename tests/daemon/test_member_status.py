"""The status of a member of a group: what its children say, asked once for all who look."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest

from streamkernel.daemon.base.health import NoStatusError
from tests.daemon.conftest import Home
from tests.daemon.endpoint import get, serving
from tests.daemon.members import BoardedMember, begin_runs
from tests.daemon.status import account, letter


@pytest.fixture
def member(homes: Callable[[str], Home], monkeypatch: pytest.MonkeyPatch) -> Iterator[BoardedMember]:
    runs = begin_runs(homes, monkeypatch)
    for one in runs:
        for point in range(4):
            one.learn(loss=0.5 - point / 10, account=account(consumed=100 * point), taken=100 * point)
    runs[1].board.letters.add([letter("<script>alert(1)</script>")])
    with ExitStack() as stack:
        yield BoardedMember(runs[0].plan, runs, stack)


def test_it_has_every_partition(member: BoardedMember) -> None:
    status = member.status()
    assert status["kind"] == "member"
    assert status["held"] == [0, 1, 2]
    assert [one["process"] for one in status["partitions"]] == ["reading", "reading", "waiting to be started"]
    assert [one["saved"] for one in status["partitions"]] == [0, 1000, None]
    figures = [one["status"]["figures"] for one in status["partitions"][:2]]
    assert [one["account"]["consumed"] for one in figures] == [300, 300]
    assert "history" not in status["partitions"][0]["status"]
    assert status["state"]["name"] == "ready"


def test_many_who_look_ask_the_children_once_a_second(member: BoardedMember) -> None:
    with serving(member.health) as url:
        threads = [threading.Thread(target=get, args=(f"{url}/api/status",)) for _ in range(20)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(member.asked) == 2  # there are two children
        member.now += 1.1
        get(f"{url}/api/status")
        assert len(member.asked) == 4
        threads = [threading.Thread(target=get, args=(f"{url}/api/status?partition=1",)) for _ in range(20)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(member.asked) == 5


def test_a_partition_has_its_history(member: BoardedMember) -> None:
    times = member.status(1)["history"]["time"]
    assert len(times) == 4
    newer = member.status(1, times[2])
    assert newer["history"]["time"] == times[3:]
    assert newer["dead_letters"][0]["raw"] == "<script>alert(1)</script>"
    with serving(member.health) as url:
        assert get(f"{url}/api/status?partition=7") == (404, "not found: partition 7 is not held here\n")
        status, text = get(f"{url}/api/status?partition=2")
        assert (status, text) == (503, "partition 2: it is not there yet\n")


def test_a_child_that_is_gone_or_does_not_answer_hides_no_other(
    member: BoardedMember, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("streamkernel.daemon.group.federation.ANSWER_SECONDS", 0.3)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        member.addresses[0] = silent.getsockname()
        status = member.status()
        assert "no answer" in status["partitions"][0]["problem"]
        assert status["partitions"][0]["status"] is None
        assert status["partitions"][1]["status"]["figures"]["account"]["consumed"] == 300
        assert status["state"]["name"] == "trouble"
        assert status["state"]["detail"].startswith("partition 0: no answer")
        with pytest.raises(NoStatusError, match="partition 0: no answer"):
            member.page.to_json(0.0, 0)
    member.now += 2
    status = member.status()
    assert "no answer" in status["partitions"][0]["problem"]
