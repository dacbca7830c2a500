"""`init`: what the commas and points of numbers mean, and what is said where a file does not show it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from streamkernel.daemon import cli
from streamkernel.daemon.init.configuration import configuration_for
from tests.daemon.configurations import plan_of


def made(folder: Path, header: str, rows: list[list[str]]) -> tuple[str, dict[str, Any]]:
    """Return the configuration for a file, as text and what it says of the inputs."""
    delimiter = ";" if ";" in header else ","
    path = folder / "t.csv"
    path.write_text("\n".join([header, *(delimiter.join(row) for row in rows)]) + "\n", encoding="utf-8")
    text = configuration_for(path)
    plan_of(folder, text)
    return text, yaml.safe_load(text)["source"].get("inputs") or {}


def test_numbers_are_read_as_they_are_written(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    prices = ["1.104,27", "17,50", "512", "-3,1"]
    rows = [
        f"{prices[n % 4]};{n % 3}.5;{['1,104', '2,577'][n % 2]};{n % 5},{n % 5};{n % 5}x,5;{n},5" for n in range(40)
    ]
    path.write_text("\n".join(["price;plain;either;other;text;y", *rows]) + "\n")
    text = configuration_for(path)
    source = yaml.safe_load(text)["source"]
    assert source["inputs"] == {
        "decimal": ",",
        "types": {
            "price": {"type": "number", "decimal": ",", "thousands": "."},
            "plain": {"type": "number", "decimal": "."},
            "either": {"type": "number", "decimal": ","},
            "other": {"type": "number", "decimal": ","},
        },
    }
    assert source["target_type"] == "float"
    with plan_of(tmp_path, text).source as opened:
        opened.open()
        record = opened.poll(1, 0)[0]
    assert (record.x, record.y) == (
        {"price": 1104.27, "plain": 0.5, "either": 1.104, "other": 0.0, "text": "0x,5"},
        0.5,
    )


COMMA = {"type": "number", "decimal": ","}
COMMA_AND_POINT = {"type": "number", "decimal": ",", "thousands": "."}
THOUSANDS = {"type": "number", "decimal": ".", "thousands": ","}


@pytest.mark.parametrize(
    ("header", "either", "shows", "read"),
    [
        ("w;s;y", "24,361", "3,5", COMMA),
        ("w,s,y", '"24,361"', '"3,5"', COMMA),
        ("w;s;y", "24,361", "1.104,27", COMMA),
        ("w;s;y", "24,361", "3.5", THOUSANDS),
        ("w;s;y", "24,361", "1,000,000", THOUSANDS),
        ("w,s,y", "24.361", '"3,5"', COMMA_AND_POINT),
        ("w;s;y", "24.361", "-2.059,45 €", COMMA_AND_POINT),
        ("w;s;y", "24.361", "0.5", "number"),
    ],
)
def test_marks_agree_over_a_file(tmp_path: Path, header: str, either: str, shows: str, read: object) -> None:
    text, inputs = made(tmp_path, header, [[either, shows, "ab"[n % 2]] for n in range(40)])
    assert inputs["types"]["w"] == read
    assert "which nothing in the file shows" not in text


@pytest.mark.parametrize(
    ("header", "either", "read", "doubt"),
    [
        (
            "w;y",
            "24,361",
            COMMA,
            '24.361, which nothing in the file shows; {decimal: ".", thousands: ","} makes it 24361',
        ),
        ("w,y", '"24,361"', THOUSANDS, '24361, which nothing in the file shows; {decimal: ","} makes it 24.361'),
        (
            "w;y",
            "24.361",
            "number",
            '24.361, which nothing in the file shows; {decimal: ",", thousands: "."} makes it 24361',
        ),
        ("w,y", "24.361", "number", None),
    ],
)
def test_what_a_file_does_not_show_is_said(
    tmp_path: Path, header: str, either: str, read: object, doubt: str | None
) -> None:
    text, inputs = made(tmp_path, header, [[either, "ab"[n % 2]] for n in range(40)])
    assert inputs["types"] == {"w": read}
    said = [line.strip() for line in text.splitlines() if "which nothing in the file shows" in line]
    bare = either.strip('"')
    assert said == ([] if doubt is None else [f"# {bare} is read as {doubt}"])
    text, _ = made(tmp_path, header.replace("w", "x"), [["ab"[n % 2], either] for n in range(40)])
    assert (f"  # The target: {bare} is read as " in text) == (doubt is not None)


def test_numbers_with_a_currency_are_told(tmp_path: Path) -> None:
    rows = [[f"-2.{n:03},45 €", f"{n % 3} %", f"{n} $"] for n in range(40)]
    text, inputs = made(tmp_path, "price;rate;y", rows)
    assert inputs == {"exclude": ["price"]}
    for said in (
        '# The column price is left out: it holds numbers with "€", which no setting reads: take that out of the file',
        '# The column rate is a text, each value a category: it holds numbers with "%", which no setting reads: take',
        '# The target holds numbers with "$", which no setting reads: take that out of the file to predict an amount.',
    ):
        assert said in text
    assert "These name a record" not in text
    assert yaml.safe_load(text)["predictions"].get("include") is None


def test_integers_beyond_what_a_number_holds_are_no_numbers(tmp_path: Path) -> None:
    """A sequence of them names records, as do those that never come again; those that come again are categories."""
    rows = [
        [str(2**70 + n), str(n**9 + 2**80), str(2**64 + n % 3), str(2**60 * (n % 3)), "ab"[n % 2]] for n in range(40)
    ]
    text, inputs = made(tmp_path, "order,device,user,size,y", rows)
    assert inputs == {"exclude": ["order", "device"], "types": {"user": "string", "size": "number"}}
    assert "# These name a record rather than describe it" in text
    assert "# a code: as a number it would lose digits" in text
    text, inputs = made(tmp_path, "order,y", [[row[0], row[4]] for row in rows])
    assert inputs == {}
    assert "# Each column seems to name a record rather than describe it. There is no other to learn from." in text
    (tmp_path / "t.jsonl").write_text(
        "".join(json.dumps({"order": 2**70 + n, "x": 1, "y": n % 2}) + "\n" for n in range(40))
    )
    assert yaml.safe_load(configuration_for(tmp_path / "t.jsonl"))["source"]["inputs"]["exclude"] == ["order"]


@pytest.mark.parametrize(
    ("values", "odd", "read"),
    [
        ([f"{n}.5" for n in range(40)], "17,50", None),
        ([f"{n},5" for n in range(40)], "kaputt", COMMA),
        ([f"{n % 9 + 1}.{n:03},45" for n in range(40)], "ca. 5", COMMA_AND_POINT),
    ],
)
def test_a_text_among_numbers_is_told(tmp_path: Path, values: list[str], odd: str, read: object) -> None:
    rows = [[odd if n == 30 else value, "ab"[n % 2]] for n, value in enumerate(values)]
    text, inputs = made(tmp_path, "price;y", rows)
    assert inputs == ({} if read is None else {"types": {"price": read}})
    assert f"#   price: numbers, 40 different; {odd} is none\n" in text


def test_a_guessed_target_is_told_beside_the_configuration(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "a.csv"
    path.write_text("price,rooms\n1.5,2\n2.5,3\n")
    assert cli.main(["init", str(path)]) == 0
    printed = capsys.readouterr()
    assert yaml.safe_load(printed.out)["source"]["target"] == "rooms"
    assert printed.err == "guessed the target 'rooms': to predict another column, add --target NAME\n"
    assert cli.main(["init", str(path), "--target", "price"]) == 0
    assert capsys.readouterr().err == ""
