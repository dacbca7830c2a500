"""A model as River draws it, as HTML of text alone."""

from __future__ import annotations

from collections.abc import Callable
from xml.etree import ElementTree

from river.base import viz

from streamkernel.daemon.base.model import Model
from streamkernel.daemon.monitoring.visible import visible

__all__ = ["drawn", "written"]


def drawn(model: Model, redact: Callable[[str], str]) -> str:
    """Return the drawing of a model, in which no text is markup and no secret is shown.

    Examples
    --------
    >>> from river import linear_model
    >>> drawn(linear_model.LogisticRegression(), str)[:54]
    '<details class="river-component river-estimator"><summ'

    """
    try:
        drawing = viz.to_html(model)
    except (OSError, TypeError):  # a function whose source is not to be had
        return ""
    for element in drawing.iter():
        # Each text by itself, before it is escaped: a secret may hold what markup is made of.
        element.text = None if element.text is None else visible(redact(element.text), lines=True)
        if element.tag == "pre":  # a block has no place in a summary
            element.tag = "span"
    return ElementTree.tostring(drawing, encoding="unicode", method="html")


def written(model: Model, redact: Callable[[str], str]) -> str:
    """Return a model as text."""
    return redact(repr(model))
