"""The inputs that come are compared with those that the model has learned, by every command that has a model."""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Callable
from contextlib import nullcontext
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
from tests.daemon.service import DIRECT, journalled, serving

RIVER = ["river.preprocessing.StandardScaler", "river.naive_bayes.GaussianNB"]
PREDICT = {"mode": "predict", "serve_from": "out/state", "checkpoint": None, "predictions": None, "dead_letters": None}
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

    def test_of_a_pipeline_of_river_too(self, home: Home) -> None:
        (home.folder / "stream.csv").write_text(rows("amount", "y").replace("k", "1").replace("m\n", "0\n"))
        run(prepare(home.configure(source=source("stream.csv"), model=RIVER)))
        (home.folder / "stream.csv").write_text((home.folder / "stream.csv").read_text().replace("amount", "betrag"))
        home.configure(source=source("stream.csv"), model=RIVER, **PREDICT)
        with pytest.raises(
            DaemonError,
            match=r"the model has learned none of the inputs that arrive \('betrag'\); it knows 'amount': rename",
        ):
            run(prepare(home.config))


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

    def test_of_a_model_of_river_too(self, home: Home, caplog: pytest.LogCaptureFixture) -> None:
        (home.folder / "stream.csv").write_text(rows("amount", "category", "y").replace("k", "1").replace("m,", "0,"))
        bayes = home.configure(source=source("stream.csv"), model=["river.naive_bayes.GaussianNB"])
        run(prepare(bayes))
        text = (home.folder / "stream.csv").read_text()
        (home.folder / "stream.csv").write_text(text.replace("amount", "amuont"))
        run(prepare(home.configure(source=source("stream.csv"), model=["river.naive_bayes.GaussianNB"], **PREDICT)))
        # A step may leave inputs out: of none it is said that it is missing.
        assert any("has not learned 'amuont' (did you mean 'amount'?) (in the" in one for one in caplog.messages)

    def test_how_many_must_be_there_is_said_by_the_configuration(self, learned: Home) -> None:
        with pytest.raises(
            DaemonError, match=r"has not learned 1 of the 2 inputs that arrive: 'amuont' \(did you mean"
        ):
            run(prepare(serves(learned, "typo.csv", limits={"min_known_inputs": 0.6})))

    def test_the_target_of_the_run_that_learned_is_told(self, learned: Home, caplog: pytest.LogCaptureFixture) -> None:
        run(prepare(serves(learned, "orders.csv")))
        assert "source: the model has not learned 'y' (in the first 16 records)" in caplog.messages

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

    def test_an_empty_date_has_no_part_and_is_no_absent_input(self) -> None:
        assert KnownInputs({"day.month.sin", "day.year", "a"}).difference(["a"], {"day"}) is None
        known = KnownInputs({"day.month", "day.year", "a"})
        assert known.difference(["a"], {""}) == known.difference(["a"])  # a column without a name has no parts
        assert (
            known.difference(["a"]) == "the model's inputs 'day.month', 'day.year' do not arrive and count as missing"
        )

    @pytest.mark.usefixtures("learned")
    def test_nothing_is_said_where_all_agree(self, caplog: pytest.LogCaptureFixture) -> None:
        with caplog.at_level(logging.WARNING):
            assert main(["predict", "out/state", "orders.csv"]) == 0
        assert caplog.messages == []


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


def test_numbers_as_text_name_the_key_to_set(home: Home, caplog: pytest.LogCaptureFixture) -> None:
    (home.folder / "x.jsonl").write_text("".join(f'{{"x": "{i / 7:.3f}", "y": true}}\n' for i in range(200)))
    run(prepare(home.configure(source={**source("x.jsonl"), "kind": "jsonl"})))
    (told,) = [message for message in caplog.messages if "comes as text" in message]
    assert told.endswith("counts as a category: set source.inputs.types: {x: number}")


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

    def test_records_of_few_words_are_waited_for(self, caplog: pytest.LogCaptureFixture) -> None:
        known = KnownInputs(map(str, range(1000)))
        feed = ComparedFeed(Trickle([*words("x", "y"), ({"7": 1}, None), *words(*"z" * 50)]), known, 0.0)
        assert sum(len(feed.poll(16, 0)) for _ in range(53)) == 53
        (told,) = caplog.messages
        assert told.startswith("source: the model has not learned 'x', 'y', 'z', and its inputs '0', '1', '10'")
        assert told.endswith("(in the first 50 records)")

    @pytest.mark.parametrize("n_records", [1, 49, 50])
    def test_few_sparse_records_end_no_source(self, n_records: int, caplog: pytest.LogCaptureFixture) -> None:
        known = KnownInputs(map(str, range(12)))
        feed = ComparedFeed(MemorySource(words(*["xyz"] * n_records)), known, 0.0)
        with nullcontext() if n_records < 50 else pytest.raises(DaemonError, match="none of the inputs that arrive"):
            while not feed.exhausted:
                feed.poll(16, 0)
            assert f"(in the first {n_records} records)" in caplog.text

    def test_so_is_a_model_that_has_learned_little(self) -> None:
        known = KnownInputs("ab", settled=False)
        feed = ComparedFeed(Trickle(words("xy", "xy", "a")), known, 0.0)
        assert [len(feed.poll(16, 0)) for _ in range(3)] == [1, 1, 1]

    def test_a_resumed_run_that_follows_learns_none_of_them(self, home: Home) -> None:
        record = '{"amount": %d, "y": true}\n'
        path = home.folder / "x.jsonl"
        path.write_text("".join(record % i for i in range(60)))
        home.configure(source={**source("x.jsonl", follow=True), "kind": "jsonl"})
        run(prepare(home.config), max_records=60)
        with path.open("a") as file:
            file.write(3 * record.replace("amount", "betrag") % (1, 2, 3))
        with pytest.raises(DaemonError, match=r"none of the inputs that arrive \('betrag'\); it knows 'amount'"):
            run(prepare(home.config), max_records=3)
        assert home.header()["source"]["account"]["consumed"] == 60


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


def test_an_empty_cell_of_a_replayed_letter_is_no_absent_input(home: Home, caplog: pytest.LogCaptureFixture) -> None:
    (home.folder / "x.csv").write_text("amount,b,y\n" + "1,2,p\n" * 60 + "1,2\n")
    run(prepare(home.configure(source={"kind": "csv", "path": "x.csv", "target": "y"})))
    (letter,) = home.lines("out/dead.jsonl")
    (home.folder / "mended.jsonl").write_text(json.dumps({**letter, "raw": "1,,p"}))
    caplog.clear()
    assert main(["replay", "mended.jsonl", str(home.config)]) == 0
    assert not [message for message in caplog.messages if "does not arrive" in message]


def test_other_inputs_of_a_resumed_run_are_told(learned: Home, caplog: pytest.LogCaptureFixture) -> None:
    run(prepare(learned.configure(source=source("orders.csv", inputs={"exclude": ["category"]}))))
    (told,) = [line for line in caplog.messages if "source.inputs" in line]
    assert told.startswith("source.inputs.exclude is [] in the checkpoint and ['category'] in the configuration: the")


@pytest.mark.usefixtures("processes")
def test_a_request_without_any_known_input_is_refused(learned: Home) -> None:
    learned.configure(source=source("orders.csv"), serve={"port": 0})
    with serving(learned, serve={"port": 0}, source=source("orders.csv")) as (client, _):
        assert client.ask("/predict", {"amount": 0.1, "new": 1})[0] == 200
        status, answer = client.ask("/predict", {"betrag": 0.1, "kategorie": "k"})
        assert (status, answer["error"]["reason"]) == (422, "refused")
        assert answer["error"]["detail"].startswith(NONE)


@pytest.mark.usefixtures("processes")
def test_so_is_a_record_to_learn_which_would_end_the_learner(learned: Home, caplog: pytest.LogCaptureFixture) -> None:
    with serving(learned, **{**DIRECT, "source": {**DIRECT["source"], "target_type": "bool"}}) as (client, _):
        status, answer = client.ask("/learn", {"betrag": 0.1, "kategorie": "k", "y": True})
        assert (status, answer["error"]["reason"]) == (422, "refused")
        assert client.ask("/learn", {"amount": 0.1, "kategorie": "k", "y": True})[0] == 202
        assert client.ask("/predict", {"amuont": 0.1, "category": "k"})[0] == 200
    assert [record["amount"] for record in journalled(learned)] == [0.1]
    assert "/predict: the model has not learned 'amuont' (did you mean 'amount'?)" in caplog.text
