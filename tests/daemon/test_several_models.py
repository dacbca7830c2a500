"""Several models on one stream: one is published, all learn, each as if it were alone."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from streamkernel.daemon.assembly.plan import prepare
from streamkernel.daemon.base.errors import CheckpointError
from streamkernel.daemon.checkpoints.store import checkpoint_files
from streamkernel.daemon.cli import main
from streamkernel.daemon.run_state.models import published_entry
from streamkernel.daemon.runtime import run
from tests.daemon.configurations import SOURCE, lines_of
from tests.daemon.conftest import Home
from tests.kills.simulated import killed

OURS = [{"streamkernel.KernelClassifier": {"seed": 1, "max_features": 128}}]
RIVER = [{"river.compose.Discard": {"args": ["color"]}}, "river.linear_model.LogisticRegression"]
BOOLEAN = {"kind": "csv", "path": "stream.csv", "target": "y", "target_type": "bool"}
BOTH = {"champion": OURS, "challenger": RIVER}


def several(home: Home, **sections: Any) -> Any:
    return prepare(home.configure(**{"source": BOOLEAN, "models": BOTH, "model": None, **sections}))


def digests(header: dict[str, Any]) -> dict[str, str]:
    return {name: entry["model"].get("state_digest", "") for name, entry in header["models"]["learners"].items()}


def test_each_model_is_as_if_it_were_alone(here: Home) -> None:
    other = [{"streamkernel.KernelClassifier": {"seed": 2, "max_features": 64}}]
    run(several(here, models={"champion": OURS, "challenger": other, "third": RIVER}))
    together = here.header()
    lines = here.lines("out/predictions.jsonl")
    assert {line.pop("model") for line in lines} == {"champion"}
    for name, steps in (("champion", OURS), ("challenger", other)):
        out = f"out/{name}"
        run(
            prepare(
                here.configure(
                    source=BOOLEAN,
                    model=steps,
                    predictions={"kind": "jsonl", "path": f"{out}.jsonl"},
                    dead_letters={"kind": "none"},
                    checkpoint={"directory": out},
                )
            )
        )
        alone = here.header(out)
        assert digests(together)[name] == published_entry(alone)["state_digest"]
        assert alone["source"]["account"] == together["source"]["account"]
    assert lines == here.lines("out/champion.jsonl")


def test_the_lines_may_have_what_the_others_predicted(here: Home) -> None:
    run(several(here, predictions={"kind": "jsonl", "path": "out/predictions.jsonl", "models": "all"}))
    last = here.lines("out/predictions.jsonl")[-1]
    assert last["model"] == "champion"
    assert list(last["models"]) == ["challenger"]
    assert set(last["models"]["challenger"]) == {"prediction", "probabilities"}


def test_a_challenger_that_refuses_everything_is_disabled_and_the_stream_goes_on(
    here: Home, caplog: pytest.LogCaptureFixture
) -> None:
    needs = [{"river.compose.Select": {"args": ["nothing"]}}, "river.linear_model.LogisticRegression"]
    limits = {"kind": "jsonl", "path": "out/dead.jsonl", "max_rate_window": 100}
    run(several(here, models={"champion": OURS, "broken": needs}, dead_letters=limits), max_records=200)
    header = here.header()
    assert header["models"]["learners"]["broken"]["bytes"] == 0
    assert "refused more than 50% of its last 100 records" in header["models"]["learners"]["broken"]["disabled"]
    assert header["models"]["learners"]["broken"]["shown"] == 51
    assert header["source"]["account"]["learned"] > 150
    assert caplog.text.count("the model broken is disabled") == 1
    run(several(here, models={"champion": OURS, "broken": needs}, dead_letters=limits))
    assert here.header()["models"]["learners"]["broken"]["disabled"]
    assert here.header()["source"]["account"]["consumed"] == 400


class TestWhatItGoesOnFrom:
    """Models come and go; one that changed is refused, with all differences and the ways on."""

    def test_a_new_one_begins_where_it_comes_and_one_that_is_gone_is_dropped(
        self, here: Home, caplog: pytest.LogCaptureFixture
    ) -> None:
        caplog.set_level(logging.INFO)
        run(several(here), max_records=160)
        run(several(here, models={"champion": OURS, "new": RIVER}), max_records=80)
        header = here.header()
        assert list(header["models"]["learners"]) == ["champion", "new"]
        assert "the model new is new: it begins after record 160" in caplog.text
        assert [header["models"]["learners"][name]["began"] for name in ("champion", "new")] == [0, 160]
        assert header["source"]["account"]["consumed"] == 240

    def test_a_single_model_goes_on_as_the_published_one_and_back(self, here: Home) -> None:
        run(prepare(here.configure(source=BOOLEAN, model=OURS)), max_records=160)
        run(several(here), max_records=80)
        assert [entry["began"] for entry in here.header()["models"]["learners"].values()] == [0, 160]
        run(prepare(here.configure(source=BOOLEAN, model=OURS)))
        split = here.header()
        assert split["models"]["published"] == ""
        whole = {"checkpoint": {"directory": "out/whole"}, "predictions": None, "dead_letters": None}
        run(prepare(here.configure(source=BOOLEAN, model=OURS, **whole)))
        assert published_entry(here.header("out/whole"))["state_digest"] == published_entry(split)["state_digest"]

    def test_all_differences_are_named(self, here: Home) -> None:
        run(several(here), max_records=160)
        changed = [{"streamkernel.KernelClassifier": {"seed": 2, "max_features": 64}}]
        with pytest.raises(CheckpointError) as caught:
            run(
                several(
                    here,
                    models={"champion": changed, "challenger": OURS},
                    source={**BOOLEAN, "path": "stream.csv", "target": "color", "target_type": "str"},
                )
            )
        text = str(caught.value)
        for part in (
            "source.target is 'y' in the checkpoint and 'color' in the configuration",
            "source.target_type is 'bool'",
            "models.champion[0].seed: checkpoint has 1, configuration says 2",
            "models.champion[0].max_features: checkpoint has 128, configuration says 64",
            "models.challenger: checkpoint has river.compose.pipeline.Pipeline, not in the configuration",
            "--fresh",
        ):
            assert part in text

    def test_the_published_one_must_be_there(self, here: Home) -> None:
        run(several(here), max_records=160)
        with pytest.raises(CheckpointError, match=r"champion, which is published, .*name it champion again.*promote"):
            run(several(here, models={"challenger": RIVER, "new": OURS}))

    def test_another_one_to_publish_is_promoted(self, here: Home) -> None:
        run(several(here), max_records=160)
        with pytest.raises(CheckpointError, match=r"promote CONFIG challenger"):
            run(several(here, publish="challenger"))


class TestPromotion:
    """`streamkernel promote` is an event at a record: from there on the other one is published."""

    def test_it_is_published_from_there_on_however_it_is_killed(
        self, here: Home, capsys: pytest.CaptureFixture[str]
    ) -> None:
        run(several(here), max_records=320)
        assert main(["promote", "config.yaml", "challenger"]) == 0
        assert "challenger is published from record 321 on, instead of champion" in capsys.readouterr().out
        killed(here, "consumed:50")
        run(prepare(here.config))
        header = here.header()
        assert header["models"]["promotions"] == [[320, "champion", "challenger"]]
        assert header["models"]["published"] == "challenger"
        names = [line["model"] for line in here.lines("out/predictions.jsonl")]
        assert names == sorted(names)[::-1]
        assert set(names) == {"champion", "challenger"}

    def test_each_refusal_names_the_way_on(self, here: Home) -> None:
        from streamkernel.daemon.promote import promote

        plan = several(here)
        with pytest.raises(CheckpointError, match="holds no checkpoint"):
            promote(plan, "challenger")
        run(plan, max_records=160)
        before = checkpoint_files(here.folder / "out/state")
        with pytest.raises(CheckpointError, match="holds no model other: name one of champion, challenger"):
            promote(several(here), "other")
        assert promote(several(here), "champion") == ["out/state: champion is published already"]
        assert checkpoint_files(here.folder / "out/state") == before


ALONE = "model: [river.linear_model.Perceptron]"
ONE = "models: {a: [river.linear_model.Perceptron]"


@pytest.mark.parametrize(
    ("text", "line"),
    [
        (ONE + "}\n" + ALONE, "model: not together"),
        ("models: {}\n", "models: must not be empty"),
        ("models: {a b: [river.linear_model.Perceptron]}\n", "models.a b: must be a name of at most 64"),
        ("models: {a: [river.linear_model.Perceptrn]}\n", "models.a[0]: river.linear_model has no Perceptrn"),
        (ONE + "}\npublish: b\n", "publish: must be one of a, got 'b'"),
        (ALONE + "\npublish: b\n", "publish: only with models"),
        (ONE + ", b: [river.linear_model.LinearRegression]}\n", "models.b: is for regression"),
        (ALONE + "\npredictions: {kind: jsonl, path: p, models: all}\n", "predictions.models: all needs models"),
        (
            ONE + "}\npredictions: {kind: jsonl, path: p, include: [model]}\n",
            "predictions.include[0]: each line has model already",
        ),
        ("", "model: required"),
    ],
)
def test_configurations_that_cannot_be(tmp_path: Any, text: str, line: str) -> None:
    assert any(one.startswith(line) for one in lines_of(tmp_path, SOURCE + text))
