"""The status page: markup, style, script and the drawings of the models in one document, which loads nothing else."""

from __future__ import annotations

import base64
import hashlib
import html
from collections.abc import Callable, Mapping
from functools import cache
from importlib.resources import files
from xml.etree import ElementTree

from river.base import viz

from streamkernel.daemon.base.health import Health, StatusSource
from streamkernel.daemon.base.model import Model
from streamkernel.daemon.config.plan import Plan
from streamkernel.daemon.monitoring.visible import visible

__all__ = ["content_policy", "drawn", "page_file", "publish_page"]

_SCRIPTS = ("text.js", "charts.js", "parts.js", "page.js")


def publish_page(plan: Plan, health: Health, status: StatusSource) -> dict[str, str]:
    """Let a server answer with the page of a configuration and its status; return the models as text, by name."""
    page = _document({name: drawn(model, plan.redact) for name, model in plan.models.items()})
    policy = content_policy(page_file("page.css"), _script())
    health.page, health.policy, health.status = (lambda: page), policy, status
    return {name: plan.redact(repr(model)) for name, model in plan.models.items()}


def drawn(model: Model, redact: Callable[[str], str]) -> str:
    """Return a model as River draws it, as HTML in which no text is markup and no secret is shown.

    Examples
    --------
    >>> from river import linear_model
    >>> drawn(linear_model.LogisticRegression(), str)[:54]
    '<details class="river-component river-estimator"><summ'

    """
    try:
        drawing = viz.to_html(model)
    except (OSError, TypeError):  # Python does not find the source of a function
        return ""
    for element in drawing.iter():
        # Each text before it is escaped: a secret may hold markup.
        element.text = None if element.text is None else visible(redact(element.text), lines=True)
        if element.tag == "pre":  # a block has no place in a summary
            element.tag = "span"
    return ElementTree.tostring(drawing, encoding="unicode", method="html")


def content_policy(style: str, script: str = "") -> str:
    """Return the Content-Security-Policy of a page that has this style and this script, and may load nothing else.

    Examples
    --------
    >>> content_policy("p{}").split(";")[:2]
    ["default-src 'none'", " style-src 'sha256-gG2yISYereRMiG2lMXrbiUgi0Ubw9p7QCeWcroOvy9Y='"]

    """
    parts = ["default-src 'none'", f"style-src {_hash(style)}"]
    if script:
        parts += [f"script-src {_hash(script)}", "connect-src 'self'"]
    return "; ".join([*parts, "img-src data:", "base-uri 'none'", "form-action 'none'", "frame-ancestors 'none'"])


def _document(drawings: Mapping[str, str]) -> str:
    page = page_file("page.html").replace("/* style */", page_file("page.css")).replace("/* script */", _script())
    shown = "".join(
        f"<figure>{f'<figcaption>{html.escape(name)}</figcaption>' if name else ''}{drawing}</figure>"
        for name, drawing in drawings.items()
        if drawing
    )
    # The drawings last: nothing in them is taken for a place to fill.
    before, _, after = page.partition("<!-- pipelines -->")
    return before + shown + after


@cache
def page_file(name: str) -> str:
    """Return the text of a file in the folder of the pages."""
    return (files(__package__) / "page" / name).read_text("utf-8")


def _script() -> str:
    return "".join(map(page_file, _SCRIPTS))


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
