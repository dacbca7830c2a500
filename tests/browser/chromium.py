"""Chromium without a screen, and what a page that is open in it says, asks for and breaks."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import urlsplit

from playwright.sync_api import Browser, Page, sync_playwright

_ARGUMENTS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
_SECONDS = 120.0


@contextmanager
def chromium(executable: str) -> Iterator[Browser]:
    """Start the browser, and end it."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=executable, args=list(_ARGUMENTS))
        yield browser
        browser.close()


class Opened:
    """A page in a context of its own.

    Attributes
    ----------
    page
        The page.
    complaints
        What the console and scripts said, and each request to another host.

    """

    def __init__(self, browser: Browser, url: str, **context: Any) -> None:
        self._host = urlsplit(url).netloc
        self.complaints: list[str] = []
        self.page: Page = browser.new_context(**context).new_page()
        self.page.on("console", lambda message: self.complaints.append(f"{message.type}: {message.text}"))
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("dialog", lambda dialog: self.complaints.append(f"dialog: {dialog.message}"))
        self.page.on("request", lambda request: self._look_at(request.url))
        self.page.goto(url)

    def _look_at(self, url: str) -> None:
        asked = urlsplit(url)
        if asked.scheme != "data" and asked.netloc != self._host:
            self.complaints.append(f"asked {url}")

    def wait_for(self, holds: Callable[[str], bool]) -> str:
        """Wait until something holds of the text of the page, and give the text."""
        deadline = time.monotonic() + _SECONDS
        while not holds(text := self.page.inner_text("body")):
            assert time.monotonic() < deadline, text
            self.page.wait_for_timeout(50)
        return text

    def close(self) -> None:
        self.page.context.close()
