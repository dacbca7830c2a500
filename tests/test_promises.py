"""Each promise of the README and of docs/operate/ has tests: docs/promises.md names them."""

import re
from functools import cache
from pathlib import Path

from tests.rings import RINGS

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs/promises.md"
ROW = re.compile(r"\| ([^|]+) \| ((?:`[^`|]+`(?:<br>)?){1,2}) \| ([123](?:, [123])?) \|")
OPERATE = sorted((ROOT / "docs" / "operate").glob("*.md"))
DATA = ROOT / "docs/operate/data.md"
# Sections that promise nothing of the program.
NO_PROMISE = {"README.md#how-it-compares", "README.md#what-it-is-not", "README.md#documentation"}


def rows() -> list[tuple[str, list[str], list[int]]]:
    """Return each promise, its tests, and a ring for each of them."""
    found = []
    for line in PAGE.read_text().splitlines():
        if "`tests/" in line and line.startswith("|"):
            row = ROW.fullmatch(line)
            assert row is not None, line
            tests, rings = re.findall("`([^`]+)`", row[2]), [int(ring) for ring in row[3].split(", ")]
            assert len(rings) in (1, len(tests)), line
            found.append((row[1], tests, rings if len(rings) == len(tests) else rings * len(tests)))
    return found


@cache
def names_of(path: str) -> set[str]:
    return set(re.findall(r"^ *def (test_\w+)\(", (ROOT / path).read_text(), re.MULTILINE))


def anchor(heading: str) -> str:
    return re.sub(r"[\s-]+", "-", re.sub(r"[^\w\s-]", "", heading).strip().lower())


def anchors(text: str) -> set[str]:
    return {anchor(heading) for heading in re.findall(r"^#+ (.*)$", re.sub(r"(?ms)^```.*?^```", "", text), re.M)}


def test_each_promise_names_tests_that_exist():
    promises = rows()
    assert len({promise for promise, _, _ in promises}) == len(promises) > 100
    for promise, tests, _ in promises:
        for test in tests:
            path, _, name = test.partition("::")
            assert (ROOT / path).is_file(), f"{promise} {path} is missing"
            assert name in names_of(path) if "::" in test else names_of(path), f"{promise} {test} is missing"


def test_the_ring_of_a_promise_is_that_of_its_test(request):
    collected = request.config.stash[RINGS]
    for promise, tests, rings in rows():
        for test, ring in zip(tests, rings, strict=True):
            assert ring == min(collected.get(test, {ring})), f"{promise} {test}"


def test_no_section_that_promises_is_left_out():
    page = PAGE.read_text()
    linked = {link.removeprefix("../") for link in re.findall(r"\]\(([^)]*#[^)]*)\)", page)}
    headings = {f"README.md#{one}" for one in anchors((ROOT / "README.md").read_text())}
    assert len(OPERATE) == 9
    for path in OPERATE:
        title, _, sections = path.read_text().partition("\n")
        assert title.startswith("# ")
        headings |= {f"operate/{path.name}#{one}" for one in anchors(sections)}
    assert linked == headings - NO_PROMISE
    # Each row of the README's table leads to the tests behind it.
    promised = (ROOT / "README.md").read_text().partition("## What it promises\n")[2].partition("\n## ")[0]
    promises = re.findall(r"^\| .*$", promised, re.MULTILINE)[2:]
    assert len(promises) > 5
    for row in promises:
        links = re.findall(r"\(docs/promises\.md#([\w-]+)\)", row)
        assert links, row
        assert set(links) <= anchors(page)


def test_each_row_of_what_data_may_look_like_has_a_test():
    def forms(text: str) -> list[str]:
        return [form for form in re.findall(r"^\| ([^|]+) \|", text, re.MULTILINE) if form not in ("input", "---")]

    section = PAGE.read_text().partition("## What your data may look like\n")[2].partition("\n## ")[0]
    assert forms(section) == forms(DATA.read_text())
    assert len(forms(section)) > 30
