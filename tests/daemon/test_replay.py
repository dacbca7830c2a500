"""Dead letters that are mended and replayed: each is learned once, whatever happens in between."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from streamkernel.daemon import cli
from tests.daemon.conftest import Home
from tests.daemon.outputs import configured, predictions

GOOD = 40


def stream(bad: list[str]) -> str:
    """Make a stream with a bad record after each tenth good one."""
    lines = ["a,b,y"]
    for number in range(GOOD):
        lines.append(f"{number / 10:.1f},{-number / 7:.2f},{'yes' if number % 3 else 'no'}")
        if number % 10 == 9 and number // 10 < len(bad):
            lines.append(bad[number // 10])
    return "\n".join(lines) + "\n"


BAD = ["1.0,2.0", "inf,1.0,yes", "3.0,4.0,x,y"]
MENDED = ["1.0,2.0,yes", "5.0,1.0,yes", "3.0,4.0,no"]


@pytest.fixture
def dead(home: Home) -> Home:
    """A home in which three records became dead letters."""
    (home.folder / "stream.csv").write_text(stream(BAD))
    configured(
        home,
        source={"kind": "csv", "path": "stream.csv", "target": "y", "target_type": "bool"},
        predictions=predictions(),
        dead_letters=predictions("out/dead.jsonl"),
    )
    assert cli.main(["run", "config.yaml"]) == 0
    assert home.header()["source"]["account"]["dead"] == 3
    return home


def mend(home: Home, *raws: str | None, path: str = "mended.jsonl", source: str = "out/dead.jsonl") -> Path:
    """Write the letters once more, each with another record where one is given."""
    letters = home.lines(source)
    for letter, raw in zip(letters, raws, strict=True):
        if raw is not None:
            letter["raw"] = raw
    mended = home.folder / path
    mended.write_text("".join(json.dumps(letter) + "\n" for letter in letters))
    return mended


def state(home: Home) -> tuple[Any, ...]:
    """What a repeated replay must not change."""
    header = home.header()
    kept = {key: header[key] for key in ("source", "replayed")}
    return header["number"], kept, (home.folder / "out/predictions.jsonl").read_bytes()


def test_mended_letters_are_learned_once(dead: Home, capsys: pytest.CaptureFixture[str]) -> None:
    before, lines = dead.header(), dead.lines("out/predictions.jsonl")
    mend(dead, *MENDED)
    assert cli.main(["replay", "mended.jsonl", "config.yaml"]) == 0
    assert capsys.readouterr().out.splitlines()[-1] == "mended.jsonl: 3 replayed"
    header = dead.header()
    account = before["source"]["account"]
    assert header["source"]["account"] == {
        **account,
        "dead": 0,
        "learned": account["learned"] + 3,
        "predicted": account["predicted"] + 3,
    }
    assert header["source"]["positions"] == before["source"]["positions"]
    assert header["source"]["recent_dead"] == before["source"]["recent_dead"]
    new = dead.lines("out/predictions.jsonl")
    assert new[: len(lines)] == lines
    places = [letter["position"] for letter in dead.lines("out/dead.jsonl")]
    assert [(line["position"], line["target"]) for line in new[len(lines) :]] == list(
        zip(places, [True, True, False], strict=True)
    )
    assert header["replayed"] == [["records", 0, 0, [place["offset"] for place in places]]]
    again = state(dead)
    assert cli.main(["replay", "mended.jsonl", "config.yaml"]) == 0
    assert capsys.readouterr().out.splitlines()[-1] == "mended.jsonl: 0 replayed; 3 replayed before"
    assert state(dead) == again


def test_the_daemon_goes_on_and_keeps_what_was_replayed(dead: Home) -> None:
    mend(dead, *MENDED)
    assert cli.main(["replay", "mended.jsonl", "config.yaml"]) == 0
    replayed = dead.header()["replayed"]
    with (dead.folder / "stream.csv").open("a") as file:
        file.write("1.0,1.0,yes\n1.0\n")
    assert cli.main(["run", "config.yaml"]) == 0
    header = dead.header()
    assert header["source"]["account"]["consumed"] == GOOD + 3 + 2
    assert header["source"]["account"]["dead"] == 1
    assert header["replayed"] == replayed
    assert len(dead.lines("out/predictions.jsonl")) == GOOD + 3 + 1
    # The new letter is replayed, and none of the others.
    assert cli.main(["replay", "out/dead.jsonl", "config.yaml"]) == 1
    assert dead.header()["source"]["account"] == header["source"]["account"]


def test_those_that_are_still_dead_stay(dead: Home, capsys: pytest.CaptureFixture[str]) -> None:
    mend(dead, MENDED[0], None, MENDED[2])
    letters = (dead.folder / "out/dead.jsonl").read_bytes()
    assert cli.main(["replay", "mended.jsonl", "config.yaml"]) == 1
    said = capsys.readouterr()
    assert "mended.jsonl: 2 replayed; 1 still dead (1 infinite): fix them" in said.out
    assert "mended.jsonl, line 2: still dead: infinite, input 'a' is infinite" in said.err
    assert dead.header()["source"]["account"]["dead"] == 1
    assert (dead.folder / "out/dead.jsonl").read_bytes() == letters
    mend(dead, MENDED[0], MENDED[1], "9.9,9.9,yes")
    assert cli.main(["replay", "mended.jsonl", "config.yaml"]) == 0
    assert "1 replayed; 2 replayed before" in capsys.readouterr().out
    assert dead.header()["source"]["account"]["dead"] == 0


def test_letters_that_are_not_whole_are_still_dead(home: Home) -> None:
    (home.folder / "stream.jsonl").write_text(
        '{"a": 1, "y": "p"}\n' * 5 + json.dumps({"a": 1, "y": "p", "b": 200 * "x"}) + "\nnull\n"
    )
    configured(
        home,
        source={"kind": "jsonl", "path": "stream.jsonl", "target": "y"},
        model=["river.dummy.PriorClassifier"],
        dead_letters=predictions("out/dead.jsonl"),
        limits={"max_record_bytes": 100},
    )
    assert cli.main(["run", "config.yaml"]) == 0
    mend(home, None, "")
    assert cli.main(["replay", "mended.jsonl", "config.yaml", "--set", "limits.max_record_bytes=1000"]) == 1
    assert home.header()["source"]["account"]["dead"] == 2
    mend(home, '{"a": 1, "y": "p", "b": "x"}', '{"a": 2}')
    assert cli.main(["replay", "mended.jsonl", "config.yaml"]) == 0
    account = {"consumed": 7, "predicted": 7, "learned": 6, "unlabeled": 1, "skipped": 0, "dead": 0}
    assert home.header()["source"]["account"] == account


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('{"position": {"partition": 0, "offset": 6}}', "line 1: is not a dead letter: raw: Field required"),
        ("not json\n", "line 1: is not a dead letter: neither a JSON object nor a header of CSV"),
        ('{"position": 1, "raw": ""}', "line 1: is not a dead letter: position: "),
        ('{"position": {"partition": 0, "offset": -6}, "raw": ""}', "position.offset: "),
        ('{"position": {"partition": 0, "offset": 6}, "raw": "x", "encoding": "base64"}', "raw: "),
        ('{"position": {"partition": 0, "offset": 6}, "raw": "x", "encoding": "klingon"}', "raw: unknown encoding"),
        ('{"position": {"partition": 0, "offset": 6}, "raw": "\\ud800"}', "raw: "),
        ('{"position"', "not JSON"),
    ],
)
def test_a_line_that_is_no_letter_stops_before_anything_is_learned(
    dead: Home, text: str, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    before = dead.header()
    mended = mend(dead, *MENDED)
    mended.write_text(text + "\n" + mended.read_text())
    assert cli.main(["replay", "mended.jsonl", "config.yaml"]) == 1
    err = capsys.readouterr().err
    assert said in err
    assert "fix the line or remove it. Nothing was replayed" in err
    assert dead.header() == before


def test_letters_the_daemon_has_yet_to_read_are_left_to_it(dead: Home, capsys: pytest.CaptureFixture[str]) -> None:
    letters = [{**dead.lines("out/dead.jsonl")[0], "position": {"partition": 0, "offset": 10_000}, "raw": MENDED[0]}]
    (dead.folder / "mended.jsonl").write_text(json.dumps(letters[0]) + "\n")
    assert cli.main(["replay", "mended.jsonl", "config.yaml"]) == 0
    assert "0 replayed; 1 left to the daemon, which still has to read their records" in capsys.readouterr().out
    shutil.copy(dead.folder / "mended.jsonl", dead.folder / "out/dead.jsonl")
    assert cli.main(["replay", "out/dead.jsonl", "config.yaml"]) == 1
    assert "remove these lines, and replay again" in capsys.readouterr().err


def test_a_daemon_at_work_is_named(dead: Home, capsys: pytest.CaptureFixture[str]) -> None:
    from streamkernel.daemon.checkpoints.store import CheckpointStore

    mend(dead, *MENDED)
    store = CheckpointStore(dead.folder / "out/state")
    store.lock()
    try:
        assert cli.main(["replay", "mended.jsonl", "config.yaml"]) == 1
    finally:
        store.close()
    assert "out/state: in use by the daemon (process " in (err := capsys.readouterr().err)
    assert "stop it, replay, and start it again" in err


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        (["checkpoint=null"], "checkpoint: required by replay"),
        (["mode=predict"], "mode: must be learn for replay"),
    ],
)
@pytest.mark.usefixtures("dead")
def test_what_cannot_be_replayed_into(settings: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    more = [word for one in settings for word in ("--set", one)]
    assert cli.main(["replay", "out/dead.jsonl", "config.yaml", *more]) == 2
    assert said in capsys.readouterr().err
