"""The status page and the report of an evaluation in a real browser: quiet, and open to every reader."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime
from pathlib import Path

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page

from streamkernel.daemon.cli import main
from streamkernel.daemon.monitoring.view import ModelView
from tests.browser.chromium import Opened, chromium
from tests.daemon.conftest import Home, Launcher, program, write_stream
from tests.daemon.endpoint import serving
from tests.daemon.members import BoardedMember, begin_runs
from tests.daemon.status import BoardedRun, account, letter
from tests.daemon.test_evaluate import ADAPTIVE, write_drifting
from tests.daemon.test_evaluate_report import GROWING
from tests.ports import reserved_port

pytestmark = pytest.mark.usefixtures("processes")

FOLLOWED = {"kind": "csv", "path": "stream.csv", "target": "y", "follow": True}
SCREENS = (("light", 1200), ("dark", 1200), ("light", 360), ("dark", 360))
MARKUP = "<script>alert(1)</script><img src=x onerror=alert(2)>"
HOSTILE = f"{MARKUP}\u202egnp.exe\u200b\ud800\x00"


@pytest.fixture(scope="module")  # no longer: whatever runs in the same process may have event loops of its own
def browser() -> Iterator[Browser]:
    with chromium(program("chromium")) as started:
        yield started


def assert_open_to_all(opened: Opened) -> None:
    """No reader is shut out, whatever the colors and the width."""
    for scheme, width in SCREENS:
        opened.page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]  # it is one of the two
        opened.page.set_viewport_size({"width": width, "height": 900})
        violations = Axe().run(opened.page).response["violations"]
        assert [one["id"] for one in violations if one["impact"] in ("serious", "critical")] == []
        assert opened.page.evaluate("document.documentElement.scrollWidth") <= width


def test_charts_move_while_a_daemon_learns_and_go_on_after_a_restart(
    browser: Browser, home: Home, launcher: Launcher
) -> None:
    port = reserved_port()
    stream = home.folder / "stream.csv"
    write_stream(stream, 600)
    home.configure(source=FOLLOWED, model=ADAPTIVE, metrics={"port": port})
    daemon = launcher.start(home, "run", "config.yaml")
    daemon.wait_for("reading csv file")
    opened = Opened(browser, f"http://127.0.0.1:{port}/")
    opened.wait_for(lambda text: "600" in text and "Weights of the experts" in text and "Importance of the" in text)
    opened.page.evaluate("window.untouched = true")
    line = opened.page.locator(".chart path.line").first
    line.wait_for(state="attached")
    before = line.get_attribute("d")
    lines = stream.read_text().splitlines()[1:401]
    with stream.open("a") as file:
        file.write("\n".join(lines) + "\n")
    text = opened.wait_for(lambda text: "1,000" in text and line.get_attribute("d") != before)
    assert "csv_width" in text  # of the stream's dead letters
    assert opened.page.locator(".bars .bar > *").count() > 5
    assert opened.page.evaluate("window.untouched")  # it was never loaded again
    assert_open_to_all(opened)
    assert opened.complaints == []

    daemon.signal(15)
    assert daemon.wait().returncode == 0
    opened.wait_for(lambda text: "No figures since" in text and "unknown" in text)
    daemon = launcher.start(home, "run", "config.yaml")
    opened.wait_for(lambda text: "No figures since" not in text and "ready" in text and "1,000" in text)
    assert opened.page.evaluate("window.untouched")
    # The browser itself says that nothing answered, and nothing else is said.
    assert {text.partition("http")[0] for text in opened.complaints} <= {
        "error: Failed to load resource: net::ERR_CONNECTION_REFUSED",
        "error: Failed to load resource: net::ERR_CONNECTION_RESET",
        "error: Failed to load resource: net::ERR_EMPTY_RESPONSE",
    }
    opened.close()
    daemon.signal(15)
    assert daemon.wait().returncode == 0


def test_hostile_texts_stay_texts(browser: Browser, here: Home) -> None:
    run = BoardedRun(here, source=HOSTILE, model=[{"river.compose.Select": {"args": [MARKUP]}}, *ADAPTIVE])
    run.board.letters.add([letter(HOSTILE + "x" * 10_000, HOSTILE * 50, HOSTILE), letter("\udcff\x1b[31m")])
    names = [HOSTILE, "z" * 10_000, "__proto__", "constructor", "\u2066\u2067", "a" * 300]
    shares = dict.fromkeys(names, 1 / len(names))
    model = ModelView(disabled=HOSTILE, rolling={HOSTILE: 0.5}, growth={"features": 3})
    figures = {"loss": 0.5, "rolling": {HOSTILE: 0.5}, "experts": shares, "inputs": shares}
    run.learn(account=account(consumed=5), models={HOSTILE: model}, loop_seconds={HOSTILE: 1.0}, **figures)
    run.health.obstacle = lambda: HOSTILE
    with serving(run.health) as url:
        opened = Opened(browser, url)
        text = opened.wait_for(lambda text: "Models side by side" in text)
        for summary in opened.page.query_selector_all("summary"):
            summary.click()
        assert opened.page.locator("script").count() == 1
        assert opened.page.locator("img, iframe, object, [onerror], [onclick], [style*=url]").count() == 0
        assert text.count("<script>alert(1)</script>") >= 8
        assert MARKUP in opened.page.inner_text(".pipelines")
        for hidden in "\u202e\u200b\x00\x1b\u2066":
            assert hidden not in opened.page.inner_text("body") + opened.page.title()
        assert "\\u202e" in text
        assert "\\ud800" in text
        assert_open_to_all(opened)
        assert opened.complaints == []
        opened.close()


def test_a_name_and_a_password_are_no_part_of_what_the_page_asks(browser: Browser, here: Home) -> None:
    run = BoardedRun(here, metrics={"port": 0, "dead_letter_chars": 0})
    run.board.letters.add([letter("very private")])
    run.learn(account=account(consumed=77), loss=0.5)
    with serving(run.health, basic_auth={"username": "me", "password": "secret"}) as url:
        opened = Opened(browser, url, http_credentials={"username": "me", "password": "secret"})
        text = opened.wait_for(lambda text: "77" in text)
        assert "not shown" in text
        assert "private" not in opened.page.content()
        opened.close()
        inside = url.replace("://", "://me:secret@")
        opened = Opened(browser, inside)
        opened.wait_for(lambda text: "77" in text)
        opened.close()


def test_a_machine_that_grows_late_labels_and_several_models(browser: Browser, here: Home) -> None:
    run = BoardedRun(here)
    figures = {
        "growth": {"features": 64, "blocks": 4, "grown": 3, "reused": 9},
        "check_margin": 0.0123,
        "calibration_error": 0.0456,
        "interval_coverage": 0.87,
        "changes": {"drifts": 2, "metric_relearnings": 5},
        "labels": {"taken": 41, "pending": 13},
        "loop_seconds": {"source": 3.0, "model": 1.0},
        "slowest_record": 0.25,
        "models": {"champion": ModelView(published=True, loss=0.1), "challenger": ModelView(loss=0.2)},
    }
    for second in range(3):
        run.learn(account=account(consumed=1000 * second), taken=1000 * second, loss=0.5 / (1 + second), **figures)
    with serving(run.health) as url:
        opened = Opened(browser, url)
        text = opened.wait_for(lambda text: "Models side by side" in text)
        for shown in (
            "Features", "blocks grown", "margin of the check", "0.0123", "0.0456", "87.0%", "drifts detected",
            "metrics relearned", "Late labels", "pending", "75.0%", "250 ms", "champion", "challenger",
        ):  # fmt: skip
            assert shown in text, shown
        titles = opened.page.locator(".chart figcaption span").all_inner_texts()
        assert titles == ["Progressive loss", "Features", "Records/s"]
        # The page of a run that is stuck says so, and its charts stay.
        run.time.now += 100
        opened.wait_for(lambda text: "The figures are 1 min 40 s old" in text)
        assert_open_to_all(opened)
        assert opened.complaints == []
        opened.close()


def test_a_chart_ends_at_the_number_of_its_tile_and_bars_go_from_0_to_100_percent(browser: Browser, here: Home) -> None:
    run = BoardedRun(here)
    run.learn(loss=1.0, rolling={"accuracy": 0.5, "log_loss": 0.9})
    run.learn(loss=2.0, rolling={"accuracy": 0.5, "log_loss": 0.9})
    experts = {"stack, drift 0": 0.4, "trees": 0.1}
    run.learn(
        1.0, loss=1.5, rolling={"accuracy": 0.75, "log_loss": 0.9}, experts=experts
    )  # the history has no point yet
    with serving(run.health) as url:
        opened = Opened(browser, url)
        text = opened.wait_for(lambda text: "Weights of the experts" in text)
        assert "log loss" not in text.lower()
        chart = opened.page.locator(".chart").first
        assert chart.locator("strong").inner_text() == "1.5"
        lines = [float(line.get_attribute("y1") or "") for line in chart.locator(".grid line").all()]
        marks = [float(mark) for mark in chart.locator(".labels text[text-anchor=end]").all_text_contents()[:-1]]
        shown = float(chart.locator(".dot").get_attribute("cy") or "")
        value = marks[0] + (shown - lines[0]) / (lines[-1] - lines[0]) * (marks[-1] - marks[0])
        assert value == pytest.approx(1.5, abs=0.01)
        bars = opened.page.locator("#experts .bars td.bar > *").all()
        assert [bar.evaluate("bar => bar.style.width") for bar in bars] == ["40%", "10%"]
        link = opened.page.locator("#experts a")
        assert (link.get_attribute("href") or "").endswith("/how-to/status-page.html#the-experts")
        assert opened.complaints == []
        opened.close()


def test_a_member_shows_its_partitions_and_leads_to_each(
    browser: Browser, homes: Callable[[str], Home], monkeypatch: pytest.MonkeyPatch
) -> None:
    runs = begin_runs(homes, monkeypatch)
    for one in runs:
        for point in range(3):
            one.learn(loss=0.5 - point / 10, account=account(consumed=1500), rolling={"accuracy": 0.75})
    with ExitStack() as stack:
        member = BoardedMember(runs[0].plan, runs, stack)
        url = stack.enter_context(serving(member.health))
        opened = Opened(browser, url)
        text = opened.wait_for(lambda text: "Partitions of this member" in text)
        for shown in ("group <g>", "3,000", "1,500", "accuracy 0.75", "waiting to be started", "4001"):
            assert shown in text, shown
        assert_open_to_all(opened)
        opened.page.click("text='1' >> nth=0")
        member.now += 2
        text = opened.wait_for(lambda text: "partition 1" in text and "Progressive loss" in text)
        assert opened.page.locator(".chart").count() >= 2
        opened.page.click("text=all partitions")
        opened.wait_for(lambda text: "Partitions of this member" in text)
        assert opened.complaints == []
        opened.close()


@contextmanager
def opened(browser: Browser, file: Path) -> Iterator[tuple[Page, list[str]]]:
    """Open a file in Chromium; what the console says is added to a list."""
    complaints: list[str] = []
    page = browser.new_page()
    page.on("console", lambda message: complaints.append(message.text))
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on("request", lambda request: complaints.append(request.url) if request.url != file.as_uri() else None)
    page.goto(file.as_uri())
    yield page, complaints
    page.close()


def test_it_is_fit_for_every_reader(browser: Browser, here: Home) -> None:
    write_drifting(here.folder / "stream.csv")
    names = ["grows", "<script>alert(1)", "a_name_that_is_longer_than_the_screen_of_a_phone_is_wide" * 2]
    for name, model in zip(names, (GROWING, ADAPTIVE, ADAPTIVE), strict=True):
        here.configure(model=model).rename(here.folder / f"{name}.yaml")
    assert main(["evaluate", *(f"{name}.yaml" for name in names), "--html", "report.html"]) == 0
    with opened(browser, here.folder / "report.html") as (page, complaints):
        for scheme, width in (("light", 1200), ("dark", 1200), ("light", 360)):
            page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]  # it is one of the two
            page.set_viewport_size({"width": width, "height": 900})
            for summary in page.query_selector_all("summary"):
                summary.click()
            assert Axe().run(page).response["violations"] == []
            assert page.evaluate("document.documentElement.scrollWidth") <= width
            chart = page.query_selector(".chart svg")
            assert chart is not None
            box = chart.bounding_box()
            assert box is not None
            assert width / 4 < box["width"] < width
        ground = page.evaluate("getComputedStyle(document.body).backgroundColor")
        page.emulate_media(color_scheme="dark")
        assert page.evaluate("getComputedStyle(document.body).backgroundColor") != ground
        assert page.query_selector("script") is None
        assert f"Evaluation of {names[0]}, {names[1]}" in page.inner_text("h1")
        assert len(page.query_selector_all("[role=img]")) == 5
        assert page.locator("svg text", has_text="drift detected").count() > 0
        assert f"{datetime.now(UTC):%Y-%m}" in page.inner_text("header")
    assert complaints == []
