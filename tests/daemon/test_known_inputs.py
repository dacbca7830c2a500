"""The inputs that come are compared with those that the model has learned, by every command that has a model."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from streamkernel.connectors.memory import MemorySource
from streamkernel.connectors.ports import Record
from streamkernel.daemon.assembly.plan import prepare
from streamkernel.daemon.base.errors import DaemonError
from streamkernel.daemon.check import check
from streamkernel.daemon.cli import main
from streamkernel.daemon.evaluate import evaluate
from streamkernel.daemon.runtime import run
from streamkernel.daemon.stream.input_names import InputNames
from streamkernel.daemon.stream.known_inputs import ComparedFeed, KnownInputs
from streamkernel.daemon.stream.stop import StopSignals
from tests.daemon.conftest import Home
from tests.daemon.service import serving

NONE = "the model has learned none of the inputs that arrive ('betrag', 'kategorie')"


def rows(*names: str, n: int = 60) -> str:
    """Orders, of which the label follows from the first column."""
    given = [(i % 7 / 7, "km"[i % 2], str(i % 7 < 3)) for i in range(n)]
    return "\n".join([",".join(names), *(",".join(map(str, one[: len(names)])) for one in given)]) + "\n"


def source(name: str, **more: Any) -> dict[str, Any]:
    return {"kind": "csv", "path": name, "target": "y", "target_type": "bool", **more}


@pytest.fixture
def learned(home: Home) -> Home:
    """A home in which a run has learned `amount` and `category`."""
    (home.folder / "orders.csv").write_text(rows("amount", "category", "y"))
    (home.folder / "renamed.csv").write_text(rows("betrag", "kategorie", "y"))
    (home.folder / "typo.csv").write_text(rows("amuont", "category"))
    run(prepare(home.configure(source=source("orders.csv"))))
    return home


def serves(home: Home, name: str, **more: Any) -> Path:
    given = source(name, **({} if name == "renamed.csv" else {"target": None}))
    return home.configure(
        **{"mode": "predict", "serve_from": "out/state", "source": given, "checkpoint": None, **more},
        predictions={"kind": "jsonl", "path": "own.jsonl"},
        dead_letters=None,
    )


class TestNoneIsThere:
    @pytest.mark.usefixtures("learned")
    def test_predict(self, capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture) -> None:
        assert main(["predict", "out/state", "renamed.csv"]) == 1
        assert capsys.readouterr().out == ""
        assert f"renamed.csv: {NONE}; it knows 'amount', 'category': rename" in caplog.text

    def test_mode_predict_evaluate_and_check(self, learned: Home) -> None:
        plan = prepare(serves(learned, "renamed.csv"))
        with pytest.raises(DaemonError, match=re.escape(f"source: {NONE}")):
            run(plan)
        assert learned.lines("own.jsonl") == []
        with pytest.raises(DaemonError, match=re.escape(NONE)):
            evaluate(prepare(learned.config), StopSignals())
        assert [NONE in line for line in check(prepare(learned.config)).bad] == [True]

    def test_a_run_with_an_initial_model_learns_nothing_of_it(self, learned: Home) -> None:
        off = {"checkpoint": None, "predictions": None, "dead_letters": None}
        given = {"source": source("renamed.csv"), "initial_model": {"checkpoint": "out/state"}, **off}
        with pytest.raises(DaemonError, match=re.escape(NONE)):
            run(prepare(learned.configure(**given)))
        learned.configure(**given, limits={"min_known_inputs": None})
        assert run(prepare(learned.config)).account["learned"] == 60


class TestSomeAreThere:
    def test_each_command_tells_it_once(
        self, learned: Home, caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str]
    ) -> None:
        said = (
            "the model has not learned 'amuont' (did you mean 'amount'?), "
            "and its input 'amount' does not arrive and counts as missing"
        )
        commands: dict[str, Callable[[], Any]] = {
            "typo.csv": lambda: main(["predict", "out/state", "typo.csv"]),
            "source": lambda: run(prepare(serves(learned, "typo.csv"))),
        }
        for place, command in commands.items():
            caplog.clear()
            command()
            told = [one.getMessage() for one in caplog.records if said in one.getMessage()]
            assert told == [f"{place}: {said} (in the first 16 records)"]
        assert len(capsys.readouterr().out.splitlines()) == 60
        assert any(said in line for line in check(prepare(learned.config)).good)

    @pytest.mark.parametrize("text", ["amount,category\n,k\n", "amount,category\n,k\n0.5,\n,m\n"])
    def test_an_empty_cell_is_no_absent_input(self, learned: Home, caplog: pytest.LogCaptureFixture, text: str) -> None:
        (learned.folder / "gaps.csv").write_text(text)
        assert main(["predict", "out/state", "gaps.csv"]) == 0
        run(prepare(serves(learned, "gaps.csv")))
        assert not [one for one in caplog.messages + check(prepare(learned.config)).good if "not arrive" in one]
        caplog.clear()
        (learned.folder / "gaps.csv").write_text("category\nk\n")
        assert main(["predict", "out/state", "gaps.csv"]) == 0
        (told,) = caplog.messages
        assert (
            told
            == "gaps.csv: the model's input 'amount' does not arrive and counts as missing (in the first 1 records)"
        )


def test_a_number_that_comes_as_text_is_told_once(
    learned: Home, caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str]
) -> None:
    (learned.folder / "typo.csv").write_text('amount,category\n"1,5",k\n"2,5",m\n')
    said = (
        "input 'amount' was a number and is now the text '1,5', which counts as a category: use numbers, or set "
        'source.inputs.types: {amount: {type: number, decimal: ","}}'
    )
    for command in (
        lambda: main(["predict", "out/state", "typo.csv"]),
        lambda: run(prepare(serves(learned, "typo.csv"))),
    ):
        caplog.clear()
        command()
        assert [message for message in caplog.messages if "was a number" in message] == [said]
    assert len(capsys.readouterr().out.splitlines()) == 2
    caplog.clear()
    check(prepare(learned.config))
    assert said in caplog.messages


class Trickle(MemorySource):
    """A source that hands out a record at a time, and may always have more."""

    exhausted = False

    def poll(self, max_records: int, timeout: float) -> list[Record]:  # noqa: ARG002
        return super().poll(1, timeout)


def words(*given: str) -> list[tuple[dict[str, Any], None]]:
    return [(dict.fromkeys(one, 1), None) for one in given]


class TestLive:
    """A source that does not end, where the records come one by one."""

    @pytest.mark.parametrize("digests", [False, True], ids=["names", "digests"])
    def test_a_full_record_of_other_inputs_is_refused_at_once(self, digests: bool) -> None:
        names = InputNames()
        names.bound({"a": 1, "b": 2}, learn=True)
        known = KnownInputs((), InputNames(0, names.to_text())) if digests else KnownInputs("ab")
        with pytest.raises(DaemonError, match=r"the model has learned none of the inputs that arrive \('x', 'y'\)"):
            ComparedFeed(Trickle(words("xy")), known, 0.0).poll(16, 0)
        feed = ComparedFeed(Trickle(words("x", "xy")), known, 0.0)  # the first one lacks an input
        assert len(feed.poll(16, 0)) == 1
        with pytest.raises(DaemonError, match="none of the inputs"):
            feed.poll(16, 0)
        for one, least in (("ax", 0.0), ("xy", None)):
            assert len(ComparedFeed(Trickle(words(one)), known, least).poll(16, 0)) == 1


def test_replay_learns_no_letters_whose_columns_are_others(home: Home, capsys: pytest.CaptureFixture[str]) -> None:
    (home.folder / "x.jsonl").write_text('{"amount": 1, "y": true}\n' * 60 + '{"amount": {}, "y": true}\n' * 2)
    run(prepare(home.configure(source={**source("x.jsonl"), "kind": "jsonl"})))
    before = home.header()
    letters = home.lines("out/dead.jsonl")
    mended = [json.dumps({**one, "raw": '{"betrag": 1, "y": true}'}) for one in letters]
    (home.folder / "mended.jsonl").write_text("\n".join(mended))
    assert main(["replay", "mended.jsonl", str(home.config)]) == 1
    assert (
        "mended.jsonl: the model has learned none of the inputs that arrive ('betrag'); it knows 'amount'"
        in capsys.readouterr().err
    )
    assert home.header() == before
    assert main(["replay", "mended.jsonl", str(home.config), "--set", "limits.min_known_inputs=null"]) == 0
    assert home.header()["source"]["account"]["learned"] == before["source"]["account"]["learned"] + 2


@pytest.mark.usefixtures("processes")
def test_a_request_without_any_known_input_is_refused(learned: Home) -> None:
    learned.configure(source=source("orders.csv"), serve={"port": 0})
    with serving(learned, serve={"port": 0}, source=source("orders.csv")) as (client, _):
        assert client.ask("/predict", {"amount": 0.1, "new": 1})[0] == 200
        status, answer = client.ask("/predict", {"betrag": 0.1, "kategorie": "k"})
        assert (status, answer["error"]["reason"]) == (422, "refused")
        assert answer["error"]["detail"].startswith(NONE)
