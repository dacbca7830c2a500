"""The report of an evaluation as a strict parser reads it."""

from __future__ import annotations

from html.parser import HTMLParser

_VOID = {"meta", "path", "rect", "use"}
_LOADING = {"src", "href", "srcset", "data", "action", "poster", "xlink:href", "background"}


class ReportPage(HTMLParser):
    """A document of HTML whose tags are closed in order, and which loads and runs nothing.

    Attributes
    ----------
    rows
        The cells of the table of figures by their row.
    labels
        What is told of each chart in words.
    tags
        The names of all elements.
    text
        All text but that of the style sheet.

    """

    def __init__(self, document: str) -> None:
        super().__init__()
        self.rows: dict[str, list[str]] = {}
        self.labels: list[str] = []
        self.tags: list[str] = []
        self.text = ""
        self._open: list[str] = []
        self._row: list[str] = []
        self.feed(document)
        self.close()
        assert self._open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        for name, value in attrs:
            assert not name.startswith("on"), (tag, name)
            assert name not in _LOADING or (value or "").startswith("#"), (tag, name, value)
            assert name != "style" or "url" not in (value or "")
        if ("role", "img") in attrs:
            self.labels.append(dict(attrs)["aria-label"] or "")
        if tag == "tr":
            self._row = []
        if tag in {"td", "th"}:
            self._row.append("")
        if tag not in _VOID:
            self._open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        if tag not in _VOID:
            self.handle_endtag(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag
        if tag == "tr" and self._row:
            self.rows[self._row[0]] = self._row[1:]

    def handle_data(self, data: str) -> None:
        if self._open and self._open[-1] == "style":
            assert "url(" not in data
            assert "@import" not in data
            return
        self.text += data
        if {"td", "th"} & set(self._open):
            self._row[-1] += data
