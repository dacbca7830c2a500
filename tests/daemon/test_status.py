"""What /api/status says of a run: always JSON, always bounded, and never from the model itself."""

from __future__ import annotations

import base64
import hashlib
import itertools
import json
import math
import re
import sys
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamkernel.connectors.ports import Position
from streamkernel.daemon.http.application import status_query
from streamkernel.daemon.monitoring.dead_letters import LastDeadLetters
from streamkernel.daemon.monitoring.status import INTERVAL_SECONDS, POINTS, FigureHistory
from streamkernel.daemon.monitoring.view import ModelView
from tests.daemon.conftest import Home
from tests.daemon.endpoint import get, serving
from tests.daemon.status import BoardedRun, account, letter


def calls_of(function: Callable[[], Any]) -> int:
    """How many calls a function makes, a measure that no other process changes."""
    count, before = 0, sys.getprofile()

    def profile(_frame: object, event: str, _argument: object) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    sys.setprofile(profile)
    try:
        function()
    finally:
        sys.setprofile(before)
    return count


class TestHistory:
    @given(st.lists(st.tuples(st.floats(0, 900), st.floats(allow_nan=True)), max_size=1000), st.integers(0, 1000))
    def test_it_is_bounded_and_its_times_rise(self, steps: list[tuple[float, float]], at: int) -> None:
        history, now = FigureHistory(["loss"]), 1.7e9
        for step, value in steps:
            now += step
            history.add(now, {"loss": value})
        every = history.newer(0.0)
        times = every["time"]
        assert len(times) == len(every["series"]["loss"]) <= POINTS
        assert all(later - one >= INTERVAL_SECONDS - 0.002 for one, later in itertools.pairwise(times))
        assert bool(times) == bool(steps)
        since = times[at % len(times)] if times else 0.0
        assert list(history.newer(since)["time"]) == [one for one in times if one > since]

    def test_it_keeps_the_last_hour(self) -> None:
        history = FigureHistory(["loss"])
        for point in range(POINTS + 100):
            history.add(point * INTERVAL_SECONDS, {"loss": point})
        assert history.newer(-1.0)["series"]["loss"] == tuple(range(100, POINTS + 100))
        assert POINTS * INTERVAL_SECONDS == 3600


class TestLastDeadLetters:
    def test_a_flood_leaves_the_last_twenty(self) -> None:
        letters = LastDeadLetters(10)
        letters.add([letter(f"{number:020}") for number in range(10_000)])
        letters.add([letter("last", "d" * 10_000)])
        letters.add([])
        assert len(letters.letters) == 20
        assert (letters.letters[0]["raw"], len(letters.letters[0]["detail"])) == ("last", 500)
        assert {len(one["raw"]) for one in letters.letters[1:]} == {10}
        assert letters.letters[1]["raw_chars"] == 20

    def test_a_secret_is_taken_out_also_where_it_is_cut(self) -> None:
        letters = LastDeadLetters(10, lambda text: text.replace("hunter2hunter2", "***"))
        letters.add([letter("12345hunter2hunter2", f"{'d' * 495}hunter2hunter2")])
        assert letters.letters[0]["raw"] == "12345***"
        assert letters.letters[0]["detail"] == "d" * 495 + "***"

    def test_nothing_of_a_record_is_kept_where_none_is_shown(self) -> None:
        letters = LastDeadLetters(0)
        letters.add([letter("private")])
        assert "private" not in str(letters.letters)
        assert not {"raw", "raw_chars", "encoding"} & letters.letters[0].keys()


def test_it_is_json_whatever_the_figures_and_names(here: Home) -> None:
    run = BoardedRun(here)
    odd = {"\ud800": math.nan, "\x00": math.inf, "</script>": -math.inf}
    run.board.letters.add([letter("\udcff", "\ud800", "\x00")])
    run.learn(loss=math.inf, rolling=odd, experts=odd, inputs=odd, models={"\udfff": ModelView(rolling=odd)})
    status = run.status()
    assert status["figures"]["expert_weights"] == dict.fromkeys(odd)
    assert status["figures"]["progressive_loss"] is None
    assert status["dead_letters"][0]["raw"] == "\udcff"
    assert status["version"] == 1


def test_since_gives_the_points_that_are_new(here: Home) -> None:
    run = BoardedRun(here)
    for point in range(10):
        run.learn(loss=point / 10)
    times = run.status()["history"]["time"]
    assert len(times) == 10
    newer = run.status(times[6])["history"]
    assert (newer["time"], newer["series"]["loss"]) == (times[7:], [0.7, 0.8, 0.9])
    assert run.status(times[-1])["history"]["time"] == []


@pytest.mark.parametrize(
    "query",
    ["since=", "since=now", "since=nan", "since=inf", "since=-1e999", f"since={'1' * 5000}", "since=1%00", "partition=",
     "partition=-1", "partition=1.0", "partition=%C2%B2", "partition=%D9%A3", f"partition={'9' * 5000}",
     "partition=2147483648", "partition=0x1", "partition=../../etc/passwd"],
)  # fmt: skip
def test_a_query_that_means_nothing_is_refused_in_a_sentence(here: Home, query: str) -> None:
    with serving(BoardedRun(here).health) as url:
        status, text = get(f"{url}/api/status?{query}")
    assert status == 400
    assert re.fullmatch(r"(since|partition) must be [a-z0-9 ]+\n", text)


@given(st.dictionaries(st.sampled_from(["since", "partition"]), st.text(max_size=40)))
def test_a_query_is_read_or_refused(query: dict[str, str]) -> None:
    try:
        since, partition = status_query(query)
    except ValueError:
        return
    assert math.isfinite(since)
    assert partition is None or 0 <= partition < 2**31


def test_a_run_has_no_partitions_of_its_own(here: Home) -> None:
    with serving(BoardedRun(here).health) as url:
        assert get(f"{url}/api/status?partition=3") == (404, "not found: partition 3 is not held here\n")


def test_the_policy_of_the_page_lets_in_what_it_has_and_nothing_else(here: Home) -> None:
    with serving(BoardedRun(here).health) as url, urllib.request.urlopen(url, timeout=30) as answer:
        page, policy = answer.read().decode(), answer.headers["Content-Security-Policy"]
    parts = dict(part.strip().partition(" ")[::2] for part in policy.split(";"))
    assert (parts["default-src"], parts["connect-src"], parts["img-src"]) == ("'none'", "'self'", "data:")
    assert "unsafe" not in policy
    for tag, part in (("style", "style-src"), ("script", "script-src")):
        (text,) = re.findall(rf"<{tag}[^>]*>(.*?)</{tag}>", page, re.DOTALL)
        assert parts[part] == f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
    assert not re.search(r"(?:src|href|action)=[\"']?(?:https?:)?//", page)


def test_who_asks_never_reaches_the_model(here: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    run = BoardedRun(here)
    run.learn(loss=0.5)

    def fail(_: object, name: str) -> Any:
        raise AssertionError(f"the model was asked for {name}")

    with serving(run.health) as url:
        monkeypatch.setattr(type(run.plan.model), "__getattribute__", fail)
        assert json.loads(get(f"{url}/api/status")[1])["figures"]["progressive_loss"] == 0.5
        assert get(url)[0] == 200


def test_the_answer_is_bounded(here: Home) -> None:
    run = BoardedRun(here, metrics={"port": 0, "dead_letter_chars": 10_000})
    run.places["records"] = {number: Position("", number, 10**12) for number in range(1000)}
    run.board.letters.add([letter("\u20ac" * 10**6, "d" * 10**6)] * 100)
    many = {f"model {number}": ModelView(rolling={"accuracy": 0.5}) for number in range(100)}
    for _ in range(POINTS + 1):
        run.learn(loss=0.123456789012345, models=many, account=account())
    body = run.board.to_json()
    assert body is not None
    assert len(body) < 2_000_000
    assert len(run.status()["positions"]) == 1000


def test_a_refresh_costs_the_same_after_many_points(here: Home) -> None:
    run = BoardedRun(here)
    for _ in range(10):
        run.learn(loss=0.5)
    early = calls_of(lambda: run.learn(loss=0.5))
    for _ in range(3 * POINTS):
        run.learn(loss=0.5)
    assert calls_of(lambda: run.learn(loss=0.5)) <= early + 5


def test_the_rate_is_that_of_the_last_seconds(here: Home) -> None:
    run = BoardedRun(here)
    for second in range(30):
        run.learn(1.0, taken=100 * second)
    for second in range(1, 11):
        run.learn(1.0, taken=2900 + 10 * second)
    assert run.status()["rate"] == pytest.approx(10.0)
    assert run.status()["snapshot"] == pytest.approx(run.time.now, abs=0.01)


def test_the_fields_are_those_of_the_documentation(here: Home) -> None:
    page = Path(__file__).parents[2] / "docs/how-to/status-page.md"
    section = page.read_text().partition("## The same as JSON")[2].partition("\n## ")[0]
    assert re.findall(r"^\| `(\w+)` \|", section, re.MULTILINE) == list(BoardedRun(here).status())
