"""Lint the prose of Markdown pages and of the code: long sentences, passive voice, banned turns, long pages.

    python docs/prose.py [--table] [PAGE ...]

Prints each breach as `page:line: what it is`, and ends with status 1 if there is any. `--table` prints the readability
of each page instead. Without pages, README.md, CONTRIBUTING.md, CHANGELOG.md, all of docs/ and the Python files of
streamkernel and connectors are read.

Code and comments in a page are not prose. The cells of tables are read for long sentences and banned turns only. The
docstrings, comments and messages of a Python file are read for a few banned turns only.
"""

from __future__ import annotations

import ast
import io
import re
import statistics
import sys
import tokenize
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parent.parent

MOST_WORDS_OF_A_SENTENCE = 30
MEAN_WORDS_OF_A_SENTENCE = 18
MOST_PASSIVE = 0.25
MOST_WORDS_OF_A_PAGE = 2_000
#: Reference, and the map of the code.
LONG_PAGES = {"docs/architecture.md", "docs/reference/configuration.md", "docs/metrics.md", "docs/promises.md"}
UNREAD = {"docs/architecture.md"}

#: Turns that make a reader stop, and what to write instead.
BANNED = {
    r"\bof which\b": "name the thing",
    r"\bwhose\b": "two sentences, or `with`",
    r"\b(is|are|was|were|be) to (?!(a|an|the|be sure)\b)(?=[a-z]+\b)": "say who does it",
    r"\bas far as\b": "say how far",
    r"\bby (it|them)selves?\b": "name who does it, or leave it out",
    r"\bof (its|their|your|his) own\b": "`its own X`, `your own X`",
    r"\banew\b": "`again`",
    r"\bof late\b": "`recently`",
    r"\bso many\b": "the number",
    r"\btake note\b": "`note`, `record`",
    r"\bwhoever\b": "name the person",
    r"\bthe other way round\b": "say both directions",
    r"\bin the place of\b": "`instead of`",
    r"\bgoes? on\b": "`continues`",
    r"\bsuch as (is|are|can|do|have)\b": "name them",
    r"\bthat of\b": "repeat the noun",
    r"\bthose of\b": "repeat the noun",
    r"\b(is|are|was|were) told\b": "`the daemon reports`, `you pass`",
    r"\blearnt\b": "`learned`",
    r"\bnothing else\b": "leave it out",
    r"\bis no (text|number|file|list|topic|name)\b": "`is not a ...`",
}
#: Turns that no docstring, comment or message of the code has.
BANNED_IN_CODE = {
    r"\banew\b": "`again`",
    r"\bbesides?\b": "`next to`, `in addition to`",
    r"\bgo(es)?\s+on\b": "`continue`",
    r"\bso\s+many\b": "the number",
    r"\bstands?\b": "`is`, `means`, `replaces`",
    r"\btold\b": "who reports what",
    r"\bwhoever\b": "the person or the process",
}
_BE = r"(?:am|is|are|was|were|be|been|being|gets?|got)"
_IRREGULAR = (
    "begun|bound|broken|brought|built|caught|chosen|cut|done|drawn|driven|fed|found|given|held|hidden|kept|known|left|lost|"
    "made|meant|met|paid|put|read|run|said|seen|sent|set|shown|spent|split|taken|taught|thrown|told|understood|won|written"
)
_PASSIVE = re.compile(rf"\b{_BE}\s+(?:\w+ly\s+|not\s+|also\s+|then\s+)?(?:\w{{2,}}ed|{_IRREGULAR})\b", re.IGNORECASE)
_END = re.compile(r"(?<=[.!?])[\"')*]*\s+(?=[\"'(*]*[A-Z0-9`])")
_WORD = re.compile(r"[A-Za-z][\w'-]*|\d[\d.,]*")


@dataclass(frozen=True)
class Sentence:
    """A sentence and the line of its page where its paragraph begins."""

    line: int
    text: str

    @property
    def n_words(self) -> int:
        """How many words it has."""
        return len(_WORD.findall(self.text))


def without_comments(text: str) -> str:
    """Return a text whose comments are blank lines."""
    return re.sub(r"<!--.*?-->", lambda found: re.sub(r"[^\n]", "", found[0]), text, flags=re.DOTALL)


def paragraphs(text: str) -> Iterator[tuple[int, str]]:
    """Yield each paragraph and list item as plain text, with its first line."""
    held: list[str] = []
    first, is_code = 0, False
    for number, line in enumerate([*without_comments(text).splitlines(), ""], 1):
        stripped = line.strip()
        is_fence = stripped.startswith(("```", "~~~"))
        is_item = re.match(r"([-*+]|\d+\.) ", stripped)
        is_markup = stripped.startswith(("#", "|", "<", ":::", "!!!", "![", "[!["))
        starts = is_fence or is_code or is_item or is_markup or not stripped
        if starts and held:
            yield first, plain(" ".join(held))
            held = []
        is_code ^= is_fence
        if is_item or not starts:
            if not held:
                first = number
            held.append(re.sub(r"^([-*+]|\d+\.) ", "", stripped))


def cells(text: str) -> Iterator[tuple[int, str]]:
    """Yield each cell of the tables as plain text, with its line."""
    for number, line in enumerate(without_comments(text).splitlines(), 1):
        if line.startswith("| "):
            yield from ((number, plain(cell)) for cell in re.split(r"(?<!\\)\||<br>", line) if cell.strip())


def plain(text: str) -> str:
    """Return a text without Markdown: links as their words, code as one word."""
    text = re.sub(r"!\[[^]]*\]\([^)]*\)", "", text)
    text = re.sub(r"`+[^`]+`+", "Code", text)
    text = re.sub(r"\$[^$]+\$", "Formula", text)
    text = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", text)
    text = re.sub(r"https?://\S+", "Link", text)
    return re.sub(r"[*_]{1,2}(?=\S)|(?<=\S)[*_]{1,2}", "", text)


def sentences(parts: Iterator[tuple[int, str]]) -> list[Sentence]:
    """Return the sentences of paragraphs or cells."""
    found = [Sentence(line, one) for line, part in parts for one in _END.split(part)]
    return [one for one in found if one.n_words > 1]


def n_syllables(word: str) -> int:
    """Return how many groups of vowels a word has, without a silent e."""
    groups = len(re.findall(r"[aeiouy]+", word.lower()))
    return max(1, groups - (word.lower().endswith("e") and not word.lower().endswith(("le", "ee"))))


def reading_ease(found: list[Sentence]) -> float:
    """Return Flesch's reading ease of sentences."""
    words = [word for one in found for word in _WORD.findall(one.text)]
    return 206.835 - 1.015 * len(words) / len(found) - 84.6 * sum(map(n_syllables, words)) / len(words)


def passive_share(found: list[Sentence]) -> float:
    """Return the share of sentences with a verb in the passive voice."""
    return sum(bool(_PASSIVE.search(one.text)) for one in found) / len(found)


def breaches(page: str, text: str) -> Iterator[str]:
    """Yield what is wrong with a page, a line each."""
    found, in_tables = sentences(paragraphs(text)), sentences(cells(text))
    n_words = sum(one.n_words for one in found)
    n_all = n_words + sum(one.n_words for one in in_tables)
    if n_all > MOST_WORDS_OF_A_PAGE and page not in LONG_PAGES:
        yield f"{page}:1: the page has {n_all:,} words. Split it at {MOST_WORDS_OF_A_PAGE:,}."
    if page in UNREAD:
        return
    if found:
        mean, passive = n_words / len(found), passive_share(found)
        if mean > MEAN_WORDS_OF_A_SENTENCE:
            yield f"{page}:1: sentences have {mean:.1f} words on average. Stay below {MEAN_WORDS_OF_A_SENTENCE}."
        if passive > MOST_PASSIVE and len(found) > 8:
            yield f"{page}:1: {passive:.0%} of the sentences are passive. Stay below {MOST_PASSIVE:.0%}."
    for one in sorted(found + in_tables, key=lambda one: one.line):
        if one.n_words > MOST_WORDS_OF_A_SENTENCE:
            yield f"{page}:{one.line}: a sentence of {one.n_words} words: {one.text[:60]}..."
        for pattern, instead in BANNED.items():
            if hit := re.search(pattern, one.text, re.IGNORECASE):
                yield f"{page}:{one.line}: `{hit[0].strip()}`. Write {instead}."


def texts(code: str) -> Iterator[tuple[int, str]]:
    """Yield each string with a space and each block of comments of a Python file, with its first line."""
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and " " in node.value:
            yield node.lineno, node.value
    found = tokenize.generate_tokens(io.StringIO(code).readline)
    block: list[str] = []
    last = 0
    for number, line in [(one.start[0], one.string) for one in found if one.type == tokenize.COMMENT]:
        if block and number > last + 1:
            yield last - len(block) + 1, "\n".join(block)
            block = []
        block.append(line.lstrip("#:"))
        last = number
    yield last - len(block) + 1, "\n".join(block)


def code_breaches(path: str, code: str) -> list[str]:
    """Return the banned turns in the docstrings, comments and messages of a Python file, a line each."""
    found = set()
    for first, text in texts(code):
        # Quoted names become spaces, so that lines keep their numbers.
        words = re.sub(r"`+[^`]+`+", lambda quoted: re.sub(r"[^\n]", " ", quoted[0]), text)
        for pattern, instead in BANNED_IN_CODE.items():
            for hit in re.finditer(pattern, words, re.IGNORECASE):
                found.add((first + words.count("\n", 0, hit.start()), " ".join(hit[0].split()), instead))
    return [f"{path}:{line}: `{turn}`. Write {instead}." for line, turn, instead in sorted(found)]


def modules() -> list[Path]:
    """Return the Python files of the product."""
    return sorted((ROOT / "streamkernel").rglob("*.py")) + sorted((ROOT / "connectors").rglob("*.py"))


def pages() -> list[Path]:
    """Return the pages that people read."""
    top = [ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md")]
    return top + sorted((ROOT / "docs").rglob("*.md"))


def table(chosen: list[Path]) -> None:
    """Print the readability of each page, and the medians."""
    heads = ["page", "words", "words a sentence", "over 30 words", "passive", "reading ease"]
    print("| " + " | ".join(heads) + " |\n" + "| --- " * len(heads) + "|")
    eases: dict[str, list[float]] = {"README and how-tos": [], "all pages": []}
    for path in chosen:
        found = sentences(paragraphs(path.read_text()))
        if len(found) < 3:
            continue
        lengths = [one.n_words for one in found]
        ease, mean = reading_ease(found), statistics.mean(lengths)
        name = str(path.relative_to(ROOT))
        eases["all pages"].append(ease)
        if name == "README.md" or "how-to" in name:
            eases["README and how-tos"].append(ease)
        over = sum(length > MOST_WORDS_OF_A_SENTENCE for length in lengths) / len(lengths)
        print(f"| {name} | {sum(lengths):,} | {mean:.1f} | {over:.0%} | {passive_share(found):.0%} | {ease:.0f} |")
    for what, values in eases.items():
        if values:
            print(f"\nMedian reading ease of {what}: {statistics.median(values):.1f}")


def main(arguments: list[str]) -> int:
    """Lint, or print the table; return the exit status."""
    given = [Path(one).resolve() for one in arguments if one != "--table"]
    if "--table" in arguments:
        table(given or pages())
        return 0
    found: list[str] = []
    chosen = given or pages() + modules()
    for path in chosen:
        lint = code_breaches if path.suffix == ".py" else breaches
        found += lint(str(path.relative_to(ROOT)), path.read_text())
    print("\n".join(found) or f"prose: {len(chosen)} files read, nothing found")
    return bool(found)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
