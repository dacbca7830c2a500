"""A model as River draws it, step by step, as a piece of HTML without secrets."""

from __future__ import annotations

from collections.abc import Callable
from xml.etree import ElementTree

from river.base import viz

from streamkernel.daemon.base.model import Model
from streamkernel.daemon.monitoring.visible import visible

__all__ = ["draw_pipeline"]


def draw_pipeline(model: Model, redact: Callable[[str], str]) -> str:
    """Return River's drawing of a model as HTML; its classes have names that begin with ``river-``.

    Parameters
    ----------
    model
        The model.
    redact
        Takes the secrets of the configuration out of a text.

    Examples
    --------
    >>> from river import linear_model
    >>> "LinearRegression" in draw_pipeline(linear_model.LinearRegression(), str)
    True

    """
    # Before the text becomes HTML: a secret that is escaped would not be found.
    drawing = viz.to_html(model)
    for element in drawing.iter():
        if element.text is not None:
            element.text = visible(redact(element.text), lines=True)
    return ElementTree.tostring(drawing, encoding="unicode", method="html")
