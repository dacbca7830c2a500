"""The report of an evaluation in a real browser: no error, open to every reader, light, dark and on a phone."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page

from streamkernel.daemon.cli import main
from tests.browser.chromium import chromium
from tests.daemon.conftest import Home, program
from tests.daemon.test_evaluate_curves import ADAPTIVE, write_drifting
from tests.daemon.test_evaluate_report import GROWING

pytestmark = pytest.mark.usefixtures("processes")


@contextmanager
def opened(file: Path) -> Iterator[tuple[Page, list[str]]]:
    """Open a file in Chromium; what the console says is added to a list."""
    complaints: list[str] = []
    with chromium(program("chromium")) as browser:
        page = browser.new_page()
        page.on("console", lambda message: complaints.append(message.text))
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("request", lambda request: complaints.append(request.url) if request.url != file.as_uri() else None)
        page.goto(file.as_uri())
        yield page, complaints


def test_it_is_fit_for_every_reader(here: Home) -> None:
    write_drifting(here.folder / "stream.csv")
    names = ["grows", "<script>alert(1)", "a_name_that_is_longer_than_the_screen_of_a_phone_is_wide" * 2]
    for name, model in zip(names, (GROWING, ADAPTIVE, ADAPTIVE), strict=True):
        here.configure(model=model).rename(here.folder / f"{name}.yaml")
    assert main(["evaluate", *(f"{name}.yaml" for name in names), "--html", "report.html"]) == 0
    with opened(here.folder / "report.html") as (page, complaints):
        for scheme, width in (("light", 1200), ("dark", 1200), ("light", 360)):
            page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]  # it is one of the two
            page.set_viewport_size({"width": width, "height": 900})
            for summary in page.query_selector_all("summary"):
                summary.click()
            assert Axe().run(page).response["violations"] == []
            assert page.evaluate("document.documentElement.scrollWidth") <= width
            # Texts keep their size whatever the width, curves fill theirs.
            assert page.evaluate("getComputedStyle(document.querySelector('.plot i')).fontSize") == "12px"
            chart = page.query_selector(".plot svg")
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
        assert page.query_selector_all(".plot .drift")
        assert f"{datetime.now(UTC):%Y-%m}" in page.inner_text("header")
    assert complaints == []
