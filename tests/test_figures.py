"""Each figure of README and docs/ that a benchmark measured is the one in its table, which is committed.

Behind the figure stands a comment that names the cell, a file of benchmarks/results/, cells that only its row has, and
the head of its column:

    CDSG reaches .489<!-- growth.md; digits; CDSG; objective --> there

The figure is the number right before the comment, the cell's its first one, rounded as the text rounds it. A new run of
a benchmark that gives another number makes the test fail until the text says so.
"""

import re
from collections.abc import Iterator
from decimal import ROUND_HALF_UP, Decimal
from pathlib import Path

ROOT = Path(__file__).parent.parent
RESULTS = ROOT / "benchmarks" / "results"
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
_NUMBER = re.compile(r"\d[\d,]*(?:\.\d+)?|\.\d+")
_COMMENT = re.compile(r"<!-- ([\w.-]+\.md;.*?) -->", re.DOTALL)
_FENCED = re.compile(r"^ *```.*?^ *```$", re.MULTILINE | re.DOTALL)
_WORDS = "two|three|four|five|six|seven|eight|nine|ten|twelve|fourteen|twenty|fifty|hundred|thousand|some|several"
# What reads like the outcome of a measurement, and so wants a comment.
_CLAIM = re.compile(
    rf"(?:\d|\b(?:{_WORDS})) (?:and more )?times (?:as )?(?:fast|slow|accurate|more accurate)"
    r"|(?:\d|thousand) (?:records/s|records a second|a second on)"
    r"|accuracy of (?:about )?[\d.]|\bMAE [\d.]|objective of [\d.]"
)


def marked(page: Path) -> Iterator[tuple[str, str]]:
    """Yield the number that ends, or ends but for a per cent sign, where each comment begins, and the comment."""
    text = page.read_text()
    for comment in _COMMENT.finditer(text):
        before = re.search(rf"({_NUMBER.pattern})%?$", text[: comment.start()])
        assert before, f"no figure stands right before <!-- {comment[1]} -->"
        yield before[1], " ".join(comment[1].split())


def cell(comment: str, folder: Path = RESULTS) -> str:
    """The cell that a comment names; LookupError where it names none, or several."""
    name, *row, column = comment.split("; ")
    found = []
    head: list[str] | None = None
    for line in (folder / name).read_text().splitlines():
        if not line.startswith("|"):
            head = None
            continue
        cells = [text.strip().strip("*") for text in line.strip("|").split("|")]
        if head is None:
            head = cells
        elif column in head and all(one in cells for one in row):
            found.append(cells[head.index(column)])
    if len(found) != 1:
        raise LookupError(f"{len(found)} cells of {name} have the column {column!r} and in their row {row}")
    return found[0]


def agrees(figure: str, measured: str) -> bool:
    """Whether a figure of a text is a measured one, rounded to the digits it has."""
    value = Decimal(_NUMBER.findall(measured)[0].replace(",", ""))
    plain = figure.replace(",", "")
    decimals = len(plain.partition(".")[2])
    zeros = 0 if decimals else len(plain) - len(plain.rstrip("0"))
    units = [Decimal(10) ** power for power in ([-decimals] if decimals else range(zeros + 1))]
    return any((value / unit).quantize(Decimal(1), ROUND_HALF_UP) * unit == Decimal(plain) for unit in units)


def test_a_figure_is_that_of_its_table(subtests):
    for page in PAGES:
        with subtests.test(page=page):
            for figure, comment in marked(page):
                assert agrees(figure, cell(comment)), f"{figure} <!-- {comment} -->: the table has {cell(comment)}"


def test_a_claim_names_its_table(subtests):
    for page in PAGES:
        with subtests.test(page=page):
            text = _FENCED.sub("", page.read_text())
            text = re.sub(rf"(?:{_NUMBER.pattern})%?{_COMMENT.pattern}", "measured", text, flags=re.DOTALL)
            assert _CLAIM.findall(text) == []
