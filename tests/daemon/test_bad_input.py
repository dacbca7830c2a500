"""What a record may be, and what happens: each row of the table, for files."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from streamkernel.daemon.assembly.plan import prepare
from streamkernel.daemon.base.errors import DaemonError
from streamkernel.daemon.runtime import run
from streamkernel.daemon.stream.ending import TooManyDeadLettersError
from tests.daemon.conftest import Home

CLASSIFIER = [{"streamkernel.KernelClassifier": {"seed": 1, "max_features": 64}}]


def go(home: Home, content: bytes, **sections: Any) -> dict[str, int]:
    """Run over a file with this content and give the account."""
    kind = sections.setdefault("source", {}).setdefault("kind", "jsonl")
    (home.folder / f"stream.{kind}").write_bytes(content)
    sections["source"] = {"path": str(home.folder / f"stream.{kind}"), "target": "y", **sections["source"]}
    for key, name in (("predictions", "out/predictions.jsonl"), ("dead_letters", "out/dead.jsonl")):
        sections[key] = {"kind": "jsonl", "path": str(home.folder / name), **sections.get(key, {})}
    settings = {"model": CLASSIFIER, "checkpoint": {"directory": str(home.folder / "out/state")}, **sections}
    return dict(run(prepare(home.configure(**settings)), fresh=True).account)


def only_letter(home: Home) -> dict[str, Any]:
    (letter,) = home.lines("out/dead.jsonl")
    return letter


GOOD = b'{"a": 1, "y": "p"}\n'


@pytest.mark.parametrize(
    ("raw", "reason"),
    [
        (b"not json", "not_json"),
        (b'{"a": 1,}', "not_json"),
        (b'{"a": 1', "not_json"),
        (b"[1, 2]", "not_an_object"),
        (b"17", "not_an_object"),
        (b"null", "not_an_object"),
        (b'{"a": "\xff", "y": "p"}', "encoding"),
        (b'{"a": 1, "y": "' + b"p" * 2000 + b'"}', "too_long"),
        (b'{"a": Infinity, "y": "p"}', "infinite"),
        (b'{"a": -1e999, "y": "p"}', "infinite"),
        (b'{"a": [1], "y": "p"}', "nested"),
        (b'{"a": {"b": 1}, "y": "p"}', "nested"),
        (b'{"a": "' + b"w" * 300 + b'", "y": "p"}', "string_too_long"),
        (b'{"a": 1, "y": "' + b"w" * 300 + b'"}', "string_too_long"),
        (b'{"a": 1, "y": ["p"]}', "target"),
    ],
)
def test_json_that_cannot_be_used_is_a_dead_letter(home: Home, raw: bytes, reason: str) -> None:
    account = go(home, GOOD + raw + b"\n" + GOOD, limits={"max_record_bytes": 1000})
    assert account == {"consumed": 3, "predicted": 2, "learned": 2, "unlabeled": 0, "skipped": 0, "dead": 1}
    letter = only_letter(home)
    assert letter["reason"] == reason
    assert letter["detail"]
    assert letter["position"]["offset"] == len(GOOD)
    kept = base64.b64decode(letter["raw"]) if letter["encoding"] == "base64" else letter["raw"].encode()
    # Of an endless line only the beginning is kept.
    assert raw.startswith(kept) if reason == "too_long" else raw == kept


@pytest.mark.parametrize(
    ("raw", "reason"),
    [
        (b"1", "csv_width"),
        (b"1,2,3", "csv_width"),
        (b'"1,p', "csv_width"),
        (b"\xff,p", "encoding"),
        (b"inf,p", "infinite"),
        (b"-1e999,p", "infinite"),
        (b"w" * 300 + b",p", "string_too_long"),
        (b"1," + b"p" * 2000, "too_long"),
    ],
)
def test_csv_that_cannot_be_used_is_a_dead_letter(home: Home, raw: bytes, reason: str) -> None:
    content = b"a,y\n1,p\n" + raw + b"\n2,q\n"
    account = go(home, content, source={"kind": "csv"}, limits={"max_record_bytes": 1000})
    assert account == {"consumed": 3, "predicted": 2, "learned": 2, "unlabeled": 0, "skipped": 0, "dead": 1}
    assert only_letter(home)["reason"] == reason
    assert only_letter(home)["position"]["offset"] == len(b"a,y\n1,p\n")


@pytest.mark.parametrize("raw", [b'{"a": 1}', b'{"a": 1, "y": null}', b'{"a": 1, "y": ""}', b'{"a": 1, "y": NaN}'])
def test_a_record_without_a_target_is_predicted_and_counted(home: Home, raw: bytes) -> None:
    account = go(home, GOOD + raw + b"\n")
    assert account == {"consumed": 2, "predicted": 2, "learned": 1, "unlabeled": 1, "skipped": 0, "dead": 0}
    assert [line["target"] for line in home.lines("out/predictions.jsonl")] == ["p", None]
    assert home.lines("out/predictions.jsonl")[1]["prediction"] == "p"


def test_inputs_and_classes_past_the_limits_are_ignored_and_the_record_goes_on(home: Home) -> None:
    content = b"".join(b'{"a%d": 1, "y": "p%d"}\n' % (number, number) for number in range(10))
    model = [{"streamkernel.KernelClassifier": {"seed": 1, "max_inputs": 3, "max_classes": 4}}]
    with pytest.warns(RuntimeWarning, match=r"past max_(inputs|classes)"):
        account = go(home, content, model=model)
    assert (account["consumed"], account["predicted"], account["dead"]) == (10, 10, 0)
    # What the model did not learn does not count as learned.
    assert (account["learned"], account["unlabeled"]) == (4, 6)


def test_empty_lines_are_skipped_and_counted(home: Home) -> None:
    account = go(home, GOOD + b"\n   \n\r\n" + GOOD)
    assert account == {"consumed": 5, "predicted": 2, "learned": 2, "unlabeled": 0, "skipped": 3, "dead": 0}


def test_what_a_river_model_raises_is_a_dead_letter(home: Home) -> None:
    content = b'{"a": 1, "y": true}\n{"a": "word", "y": true}\n{"a": 2, "y": false}\n'
    model = ["river.preprocessing.StandardScaler", "river.linear_model.LogisticRegression"]
    account = go(home, content, model=model, source={"kind": "jsonl", "target_type": "bool"})
    assert (account["learned"], account["dead"]) == (2, 1)
    assert only_letter(home)["reason"] == "refused"
    assert only_letter(home)["detail"].startswith("TypeError: ")


class TestTooMany:
    """More dead letters than max_rate of the last max_rate_window: the source does not match the configuration."""

    BAD = b"broken\n"

    def test_it_stops(self, home: Home) -> None:
        with pytest.raises(TooManyDeadLettersError, match="more than 50% of the last 20 records were dead letters"):
            go(home, GOOD * 10 + self.BAD * 100, dead_letters={"max_rate": 0.5, "max_rate_window": 20})
        letters = home.lines("out/dead.jsonl")
        assert len(letters) >= 11


def account_of(folder: Path, kind: str, content: bytes, **source: Any) -> tuple[dict[str, int], int, int]:
    home = Home(folder)
    try:
        account = go(home, content, source={"kind": kind, **source}, dead_letters={"max_rate": 1.0}, metrics=None)
    except DaemonError:  # no record has its label
        account = home.header()["source"]["account"]
    return account, len(home.lines("out/predictions.jsonl")), len(home.lines("out/dead.jsonl"))


def assert_all_accounted_for(account: dict[str, int], predictions: int, letters: int) -> None:
    assert account["learned"] + account["unlabeled"] + account["skipped"] + account["dead"] == account["consumed"]
    assert account["learned"] + account["unlabeled"] == account["predicted"] == predictions
    assert account["dead"] == letters


json_bytes = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda children: st.lists(children, max_size=3) | st.dictionaries(st.sampled_from("aby"), children, max_size=3),
    max_leaves=5,
).map(lambda value: json.dumps(value).encode())
json_lines = st.lists(
    st.one_of(
        st.binary(max_size=30),
        json_bytes,
        st.dictionaries(
            st.sampled_from("abcy"), st.sampled_from([1, "p", "q", None, 1e308, -2, True, "", "ü"]), max_size=4
        ).map(lambda value: json.dumps(value).encode()),
    ),
    max_size=12,
).map(b"\n".join)
csv_lines = st.lists(
    st.one_of(
        st.binary(max_size=20),
        st.lists(
            st.sampled_from(["1", "-2.5", "p", "q", "", "nan", "1e308", '"a,b"', '"', "1e999"]), min_size=1, max_size=4
        ).map(lambda fields: ",".join(fields).encode()),
    ),
    max_size=12,
).map(lambda lines: b"a,b,y\n" + b"\n".join(lines))


@given(content=json_lines)
@example(content=b"")
@example(content=b"\xef\xbb\xbf{}\n")
@example(content=b'{"a": 1e308, "b": -1e308, "y": "p"}\n' * 300)
def test_any_bytes_as_json_lines_are_accounted_for(tmp_path_factory: pytest.TempPathFactory, content: bytes) -> None:
    folder = tmp_path_factory.getbasetemp() / "fuzz-json"
    folder.mkdir(exist_ok=True)
    assert_all_accounted_for(*account_of(folder, "jsonl", content))


@given(content=csv_lines, multiline=st.booleans())
@example(content=b"a,b,y\n1e308,-1e308,p\n" * 300, multiline=False)
def test_any_bytes_as_csv_are_accounted_for(
    tmp_path_factory: pytest.TempPathFactory, content: bytes, multiline: bool
) -> None:
    folder = tmp_path_factory.getbasetemp() / "fuzz-csv"
    folder.mkdir(exist_ok=True)
    assert_all_accounted_for(*account_of(folder, "csv", content, multiline=multiline))
