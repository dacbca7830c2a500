"""What /api/status says of a run and of a member of a group: always JSON, bounded, and never from the model itself."""

from __future__ import annotations

import base64
import hashlib
import itertools
import json
import math
import re
import socket
import subprocess
import sys
import threading
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.parser import text_string_to_metric_families

from connectors.ports import Position
from streamkernel import AdaptiveKernelClassifier
from streamkernel.daemon.base.health import Health, NoStatusError
from streamkernel.daemon.base.status_snapshot import StatusHistory
from streamkernel.daemon.config.schema import MetricsConfig
from streamkernel.daemon.group.federation import Federation, ask
from streamkernel.daemon.monitoring.exporter.exporter import Exporter
from streamkernel.daemon.monitoring.model_view import ModelView
from streamkernel.daemon.monitoring.server import Server
from streamkernel.daemon.monitoring.status.history import INTERVAL_SECONDS, POINTS, FigureHistory
from streamkernel.daemon.monitoring.status.last_dead_letters import LastDeadLetters
from streamkernel.daemon.serving.status_query import status_query
from tests.daemon.conftest import Home
from tests.daemon.endpoint import get, serving
from tests.daemon.members import BoardedMember
from tests.daemon.status import BoardedRun, account, letter
from tests.ports import closed_port


class TestHistory:
    @given(st.lists(st.tuples(st.floats(0, 900), st.floats(allow_nan=True)), max_size=1000), st.integers(0, 1000))
    def test_it_is_bounded_and_its_times_rise(self, steps: list[tuple[float, float]], at: int) -> None:
        history, now = FigureHistory(["loss"]), 1.7e9
        for step, value in steps:
            now += step
            history.add(now, {"loss": value})
        every = history.columns.newer(0.0)
        times = every.time
        assert len(times) == len(every.series["loss"]) <= POINTS
        assert all(later - one >= INTERVAL_SECONDS - 0.002 for one, later in itertools.pairwise(times))
        assert bool(times) == bool(steps)
        since = times[at % len(times)] if times else 0.0
        assert history.columns.newer(since).time == [one for one in times if one > since]

    def test_it_keeps_the_last_hour(self) -> None:
        history = FigureHistory(["loss"])
        for point in range(POINTS + 100):
            history.add(point * INTERVAL_SECONDS, {"loss": point})
        found = history.columns.newer(-1.0)
        assert found.series["loss"] == list(range(100, POINTS + 100))
        assert POINTS * INTERVAL_SECONDS == 3600

    def test_who_reads_has_a_copy(self) -> None:
        history = FigureHistory(["loss"])
        history.add(5.0, {"loss": 1.0})
        before = history.columns
        for point in range(2 * POINTS):
            history.add(10.0 + point * INTERVAL_SECONDS, {})
        assert before.newer(0.0) == StatusHistory(INTERVAL_SECONDS, [5.0], {"loss": [1.0]})


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

    def calls() -> int:
        """How many calls a refresh with a point takes, a measure that no other process changes."""
        count = 0

        def profile(_frame: object, event: str, _argument: object) -> None:
            nonlocal count
            count += event in ("call", "c_call")

        before = sys.getprofile()
        sys.setprofile(profile)
        try:
            run.learn(loss=0.5)
        finally:
            sys.setprofile(before)
        return count

    for _ in range(10):
        run.learn(loss=0.5)
    early = calls()
    for _ in range(3 * POINTS):
        run.learn(loss=0.5)
    assert calls() <= early + 5


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


@pytest.fixture
def member(homes: Callable[[str], Home], monkeypatch: pytest.MonkeyPatch) -> Iterator[BoardedMember]:
    runs = []
    for name in ("one", "two"):
        home = homes(name)
        (home.folder / "stream.csv").write_text("a,y\n")
        monkeypatch.chdir(home.folder)
        runs.append(BoardedRun(home))
        for point in range(4):
            runs[-1].learn(loss=0.5 - point / 10, account=account(consumed=100 * point), taken=100 * point)
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


def exported(partition: int) -> CollectorRegistry:
    registry = CollectorRegistry()
    Counter("streamkernel_dead", "With a \\ and\na line.", ["reason"], registry=registry).labels('a "b"').inc(partition)
    lag = Gauge("streamkernel_lag", "To come.", ["topic", "partition"], registry=registry)
    lag.labels("t", str(partition)).set(float("nan") if partition else 7)
    Histogram("streamkernel_seconds", "How long.", buckets=[0.1, 1], registry=registry).observe(0.5)
    return registry


@pytest.fixture(params=[None, {"username": "me", "password": "s3cret"}])
def settings(request: pytest.FixtureRequest) -> MetricsConfig:
    return MetricsConfig(port=0, basic_auth=request.param)


@pytest.fixture
def children(settings: MetricsConfig) -> Iterator[dict[int, tuple[str, int]]]:
    servers = {partition: Server(settings, exported(partition), Health()) for partition in (0, 1)}
    yield {partition: ("127.0.0.1", server.port) for partition, server in servers.items()}
    for server in servers.values():
        server.close()


def test_all_series_of_all_children_told_apart(children: dict[int, tuple[str, int]], settings: MetricsConfig) -> None:
    federation = Federation(lambda: children, lambda: 3, settings.basic_auth)
    text = generate_latest(federation.registry).decode()
    families = list(text_string_to_metric_families(text))
    assert len({family.name for family in families}) == len(families)
    found = [sample for family in families for sample in family.samples]
    values = {(sample.name, *sorted(sample.labels.items())): sample.value for sample in found}
    assert len(values) == len(found)
    assert values["streamkernel_group_partitions",] == 3
    for partition in (0, 1):
        own = ("partition", str(partition))
        assert values["streamkernel_dead_total", own, ("reason", 'a "b"')] == partition
        assert values["streamkernel_seconds_bucket", ("le", "1.0"), own] == 1
        assert values["streamkernel_seconds_sum", own] == 0.5
    # The lag has the label by itself.
    assert values["streamkernel_lag", ("partition", "0"), ("topic", "t")] == 7
    for line in text.splitlines():
        assert line.count("partition=") <= 1, line
    # What a child says of its metrics stays as it was.
    own_text = generate_latest(exported(0)).decode()
    assert {line for line in own_text.splitlines() if line.startswith("#")} <= set(text.splitlines())


def test_a_child_that_does_not_answer_is_left_out(
    children: dict[int, tuple[str, int]], settings: MetricsConfig, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("streamkernel.daemon.group.federation.ANSWER_SECONDS", 0.2)
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    with socket.create_server(("127.0.0.1", 0)) as deaf, socket.socket() as gone:
        addresses = {**children, 2: deaf.getsockname(), 3: ("127.0.0.1", closed_port(gone))}
        federation = Federation(lambda: addresses, lambda: 4, settings.basic_auth)
        text = generate_latest(federation.registry).decode()
        answers = ask(addresses, "/healthz")
    assert 'partition="1"' in text
    assert 'partition="2"' not in text
    assert [status for status, _ in answers.values()] == [200, 200, 0, 0]
    assert answers[2][1].startswith("no answer (")


def test_no_children_is_no_trouble() -> None:
    federation = Federation(dict, lambda: 0)
    assert "streamkernel_group_partitions 0.0" in generate_latest(federation.registry).decode()


def test_promtool_finds_no_fault(promtool: str) -> None:
    model = AdaptiveKernelClassifier(seed=1)
    model.learn_one({"a": 1.0}, "x")
    exporters = [Exporter(model, ["accuracy"], 100) for _ in range(2)]
    servers = [Server(MetricsConfig(port=0), exporter.registry, Health()) for exporter in exporters]
    try:
        addresses = {partition: ("127.0.0.1", server.port) for partition, server in enumerate(servers)}
        text = generate_latest(Federation(lambda: addresses, lambda: 2).registry)
    finally:
        for server in servers:
            server.close()
    checked = subprocess.run([promtool, "check", "metrics"], input=text, capture_output=True, check=False)
    assert (checked.returncode, checked.stderr) == (0, b"")
    # Nothing that a daemon tells is missing, and each is what it was.
    said = {line for line in generate_latest(exporters[0].registry).splitlines() if line.startswith(b"#")}
    assert said <= set(text.splitlines())
