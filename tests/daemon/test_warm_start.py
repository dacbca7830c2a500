"""A warm start: one source is learned to its end, then the main one, each record once across the seam."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from streamkernel.daemon import cli
from streamkernel.daemon.assembly.plan import prepare
from streamkernel.daemon.base.errors import CheckpointError
from streamkernel.daemon.check import check
from streamkernel.daemon.components.caveats import caveats
from streamkernel.daemon.evaluate import evaluate
from streamkernel.daemon.run_state.models import published_entry
from streamkernel.daemon.runtime import run
from streamkernel.daemon.stream.ending import TooManyDeadLettersError
from streamkernel.daemon.stream.stop import StopSignals
from tests.daemon.configurations import GOOD, lines_of
from tests.daemon.conftest import Home, write_stream

OURS = [{"streamkernel.KernelClassifier": {"seed": 1, "max_features": 256}}]
RIVER = [
    {"river.compose.Discard": {"args": ["color"]}},
    "river.preprocessing.StandardScaler",
    {"river.tree.HoeffdingTreeClassifier": {"grace_period": 50}},
]
WARM = {"source": {"kind": "csv", "path": "history.csv", "target": "y"}}


@pytest.fixture
def warm(here: Home) -> Home:
    write_stream(here.folder / "history.csv", 300, seed=1)
    return here


@pytest.mark.parametrize("model", [OURS, RIVER], ids=["ours", "River's"])
def test_it_ends_as_one_run_over_both_streams(warm: Home, model: list[Any]) -> None:
    run(prepare(warm.configure(model=model, warm_start=WARM)))
    header, lines = warm.header(), warm.lines("out/predictions.jsonl")
    assert header["source"]["account"]["consumed"] == 400
    assert len(lines) == header["source"]["account"]["predicted"]
    first = header["warm_start"]
    assert first["done"]
    assert first["account"]["consumed"] == 300
    assert first["positions"] == []
    letters = warm.lines("out/dead.jsonl")
    assert sum(one["position"].get("source") == "warm_start" for one in letters) == first["account"]["dead"] > 0
    assert len(letters) == first["account"]["dead"] + header["source"]["account"]["dead"]

    rows = (warm.folder / "stream.csv").read_text().partition("\n")[2]
    (warm.folder / "stream.csv").write_text((warm.folder / "history.csv").read_text() + rows)
    run(prepare(warm.configure(model=model)), fresh=True)
    whole = warm.header()
    assert published_entry(whole) == published_entry(header)
    names = ("prediction", "probabilities", "target")
    one, other = (
        [[line[name] for name in names] for line in part[-len(lines) :]]
        for part in (lines, warm.lines("out/predictions.jsonl"))
    )
    assert one == other


def test_its_dead_letters_can_be_read_in_the_encoding_of_its_source(here: Home) -> None:
    rows = (here.folder / "stream.csv").read_text().replace("color", "größe").replace("green", "grün")
    (here.folder / "history.csv").write_bytes((rows + "1,2,zu viel für,yes,no\n").encode("latin-1"))
    run(prepare(here.configure(warm_start={"source": {**WARM["source"], "encoding": "latin-1"}})))
    (letter,) = [one for one in here.lines("out/dead.jsonl") if one["detail"].startswith("5 fields")]
    assert letter["position"]["source"] == "warm_start"
    assert (letter["encoding"], letter["raw"]) == ("latin-1", "1,2,zu viel für,yes,no")


def test_it_stops_in_the_midst_and_goes_on(warm: Home) -> None:
    plan = prepare(warm.configure(warm_start=WARM))
    assert run(plan, max_records=200).account["consumed"] == 200
    header = warm.header()
    assert not header["warm_start"]["done"]
    assert header["source"]["account"]["consumed"] == 0
    assert run(prepare(warm.config), max_records=200).account["consumed"] == 100
    assert warm.header()["warm_start"]["done"]
    run(prepare(warm.config))
    assert warm.header()["source"]["account"]["consumed"] == 400


def test_another_warm_start_is_refused_in_the_midst_and_let_be_afterwards(
    warm: Home, caplog: pytest.LogCaptureFixture
) -> None:
    run(prepare(warm.configure(warm_start=WARM)), max_records=200)
    with pytest.raises(
        CheckpointError, match="warm_start is half learned in the checkpoint and not set in the configuration"
    ):
        run(prepare(warm.configure()))
    other = {"source": {**WARM["source"], "delimiter": ";"}}
    with pytest.raises(CheckpointError, match=r"warm_start\.source\.delimiter is ',' in the checkpoint"):
        run(prepare(warm.configure(warm_start=other)))
    run(prepare(warm.configure(warm_start=WARM)), max_records=200)
    (warm.folder / "history.csv").unlink()
    assert check(prepare(warm.config)).bad == []
    run(prepare(warm.configure()), max_records=100)
    run(prepare(warm.configure(warm_start=other)))
    assert warm.header()["source"]["account"]["consumed"] == 400
    run(prepare(warm.configure()), fresh=True)
    run(prepare(warm.configure(warm_start=WARM)))
    assert "warm_start: not learned, because the run began without" in caplog.text


def test_check_and_evaluate_begin_with_it(warm: Home) -> None:
    plan = prepare(warm.configure(warm_start=WARM, checkpoint=None))
    found = check(plan)
    assert any(line.startswith("warm_start: csv file history.csv") for line in found.good)
    assert found.bad == []
    view = evaluate(plan, StopSignals()).view
    cold = evaluate(prepare(warm.configure(checkpoint=None)), StopSignals()).view
    assert view.account["consumed"] == cold.account["consumed"] == 400
    assert view.overall["accuracy"] > cold.overall["accuracy"]
    ran = run(prepare(warm.configure(warm_start=WARM, checkpoint=None)))
    assert ran.overall == pytest.approx(view.overall)


def test_the_source_may_be_of_any_kind_that_ends(warm: Home) -> None:
    river = {"source": {"kind": "river", "dataset": "Phishing"}}
    history = [json.dumps({"a": i, "b": 1.0, "color": "red", "y": "yes"}) for i in range(50)]
    (warm.folder / "h1.jsonl").write_text("\n".join(history))
    (warm.folder / "h2.jsonl").write_text("\n".join(history))
    several = {"source": {"kind": "jsonl", "path": "h?.jsonl", "target": "y"}}
    for section, n in ((river, 1250), (several, 100)):
        strange = {"min_known_inputs": None}  # the main source has none of the inputs of Phishing
        run(prepare(warm.configure(warm_start=section, limits=strange)), fresh=True, max_records=n + 10)
        header = warm.header()
        assert header["warm_start"]["account"]["consumed"] == n
        assert header["source"]["account"]["consumed"] == 10


def test_one_that_is_not_what_the_configuration_says_stops_before_the_seam(warm: Home) -> None:
    (warm.folder / "history.csv").write_text("a,y\n" + 20 * "1\n")
    for _ in range(2):
        with pytest.raises(TooManyDeadLettersError, match="none of the 20 records could be used"):
            run(prepare(warm.configure(warm_start=WARM)))
    assert not warm.header()["warm_start"]["done"]
    assert warm.header()["source"]["account"]["consumed"] == 0


def test_its_dead_letters_are_not_replayed(warm: Home, capsys: pytest.CaptureFixture[str]) -> None:
    run(prepare(warm.configure(warm_start=WARM)))
    (warm.folder / "mended.jsonl").write_bytes((warm.folder / "out/dead.jsonl").read_bytes())
    assert cli.main(["replay", "mended.jsonl", "config.yaml"]) == 1
    assert "a letter of the warm start cannot be replayed: remove such lines, and" in capsys.readouterr().err
    lines = (warm.folder / "out/dead.jsonl").read_text().splitlines(keepends=True)
    (warm.folder / "mended.jsonl").write_text("".join(line for line in lines if "warm_start" not in line))
    before = warm.header()["warm_start"]
    assert cli.main(["replay", "mended.jsonl", "config.yaml"]) in (0, 1)
    assert warm.header()["warm_start"] == before


@pytest.mark.parametrize(
    ("source", "line"),
    [
        ("{kind: csv, path: b.csv}", ".target: required, it names the column or key of the label"),
        ("{kind: csv, path: b.csv, target: y, follow: true}", ".follow: must be a source that ends: "),
        ("{kind: csv, path: b, target: y, watch: true}", ".watch: must be a source that ends: drop"),
        ("{kind: kafka, topic: t, bootstrap_servers: a:1, target: y}", ".kind: must be a source that"),
        ("{kind: csv, path: '-', target: y}", ": csv from standard input cannot be read again"),
        ("{kind: river, dataset: synth.SEA}", ": must be a source that ends, river data set"),
        ("{kind: cvs}", ".kind: must be one of csv, jsonl, river, kafka, journal, got 'cvs', did you"),
    ],
)
def test_sources_that_cannot_be_learned_first_are_refused(tmp_path: Path, source: str, line: str) -> None:
    (found,) = lines_of(tmp_path, f"{GOOD}warm_start: {{source: {source}}}\n")
    assert found.startswith(f"warm_start.source{line}")


def test_it_is_not_for_every_run(tmp_path: Path) -> None:
    warm_start = "warm_start: {source: {kind: csv, path: b.csv, target: y}}\n"
    (line,) = lines_of(tmp_path, f"{GOOD}{warm_start}mode: predict\nserve_from: state\n")
    assert line == "warm_start: not in mode predict, which learns nothing: name a trained model in serve_from"


@pytest.mark.parametrize(
    ("source", "first", "both"),
    [
        ({"path": "stream.csv"}, {"path": "history.csv"}, None),
        ({"path": "stream.csv"}, {"path": "./stream.csv"}, "stream.csv"),
        ({"path": ["*.csv"]}, {"path": "link.csv"}, "history.csv"),
        ({"path": ".", "watch": True}, {"path": "*.csv"}, "history.csv and 1 more"),
        ({"path": "link.csv"}, {"path": ["stream.csv", "history.csv"]}, "history.csv"),
    ],
)
def test_what_is_learned_twice_is_told(
    warm: Home, source: dict[str, Any], first: dict[str, Any], both: str | None
) -> None:
    (warm.folder / "link.csv").symlink_to("history.csv")
    csv = {"kind": "csv", "target": "y"}
    plan = prepare(warm.configure(model=OURS, source=csv | source, warm_start={"source": csv | first}))
    told = [line for line in caveats(plan, {}) if "learned twice" in line]
    assert len(told) == (both is not None)
    assert both is None or f"{both}: its records are learned twice. To avoid that, name only" in told[0]


def test_a_data_set_that_is_learned_twice_is_told(warm: Home) -> None:
    river = {"kind": "river", "dataset": "Bananas"}
    plan = prepare(warm.configure(model=OURS, source=river, warm_start={"source": river}))
    assert any("both read the data set Bananas: its records are learned twice." in line for line in caveats(plan, {}))
