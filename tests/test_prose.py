"""The linter of our pages and code finds what it is made for."""

from docs.prose import breaches, code_breaches, n_syllables, paragraphs, reading_ease, sentences


def found(text: str) -> list[str]:
    return [line.partition(": ")[2] for line in breaches("docs/page.md", text)]


def test_a_plain_page_passes():
    assert found("# Title\n\nThe daemon reads a topic. It writes predictions.\n\n- A list has items.\n") == []


def test_a_long_sentence_is_found_at_its_line():
    text = "One.\n\n" + "The daemon reads " * 11 + "records.\n"
    assert [line for line in breaches("docs/page.md", text) if ":3:" in line and "34 words" in line]


def test_a_banned_turn_is_found_in_text_and_in_tables():
    assert found("A record whose label is late waits.") == ["`whose`. Write two sentences, or `with`."]
    assert found("| a | b |\n| --- | --- |\n| the file learnt | x |\n") == ["`learnt`. Write `learned`."]


def test_code_and_comments_are_not_prose():
    assert found("```\na file whose name\n```\n\nSee `whose.py`. <!-- whose -->\n") == []


def test_a_banned_turn_is_found_in_docstrings_comments_and_messages():
    docstring, comment = '"""The daemon\n\nreads so\nmany records."""', "# It goes\n# on, `told` or not."
    code = f'{docstring}\ntold = 1\n{comment}\nraise Error(f"{{told}} besides")\n'
    assert code_breaches("daemon/page.py", code) == [
        "daemon/page.py:3: `so many`. Write the number.",
        "daemon/page.py:6: `goes on`. Write `continue`.",
        "daemon/page.py:8: `besides`. Write `next to`, `in addition to`.",
    ]


def test_reading_ease_is_that_of_flesch():
    # 2 sentences, 6 words, 7 syllables.
    few = sentences(paragraphs("The cat sat. The dog barked here.\n"))
    words = ["The", "cat", "sat", "The", "dog", "barked", "here"]
    n_all = sum(map(n_syllables, words))
    assert reading_ease(few) == 206.835 - 1.015 * 7 / 2 - 84.6 * n_all / 7
    assert [n_syllables(word) for word in ("cat", "table", "here", "reading")] == [1, 2, 1, 2]
