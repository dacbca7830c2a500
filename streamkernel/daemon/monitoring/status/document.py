"""The document of the status page: markup, style and script in one, which loads nothing from elsewhere."""

from __future__ import annotations

import base64
import hashlib
import html
from collections.abc import Mapping
from functools import cache
from importlib.resources import files

__all__ = ["content_policy", "status_document", "status_policy"]

_SCRIPTS = ("text.js", "charts.js", "parts.js", "page.js")


def status_document(drawings: Mapping[str, str]) -> str:
    """Return the page with the drawings of the models, by their names, as HTML.

    The name is empty where there is one model.
    """
    shown = "".join(
        f"<figure>{f'<figcaption>{html.escape(name)}</figcaption>' if name else ''}{drawing}</figure>"
        for name, drawing in drawings.items()
        if drawing
    )
    # The drawings last: nothing in them is taken for a place to fill.
    before, _, after = _frame().partition("<!-- pipelines -->")
    return before + shown + after


def content_policy(style: str, script: str = "") -> str:
    """Return the Content-Security-Policy of a page that has this style and this script, and may load nothing else.

    Examples
    --------
    >>> content_policy("p{}").split(";")[:2]
    ["default-src 'none'", " style-src 'sha256-9dNz5hjKBEbdQ5whX8vfPxNV3eKk7DnYtpUSXSF4AtQ='"]

    """
    parts = ["default-src 'none'", f"style-src {_hash(style)}"]
    if script:
        parts += [f"script-src {_hash(script)}", "connect-src 'self'"]
    return "; ".join([*parts, "img-src data:", "base-uri 'none'", "form-action 'none'", "frame-ancestors 'none'"])


def status_policy() -> str:
    """Return the Content-Security-Policy of the status page."""
    return content_policy(_style(), _script())


@cache
def _frame() -> str:
    page = (files(__package__) / "page.html").read_text("utf-8")
    return page.replace("/* style */", _style()).replace("/* script */", _script())


@cache
def _style() -> str:
    return (files(__package__) / "page.css").read_text("utf-8")


@cache
def _script() -> str:
    return "".join((files(__package__) / name).read_text("utf-8") for name in _SCRIPTS)


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
