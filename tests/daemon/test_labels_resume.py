"""A run with late labels goes on from a checkpoint of other labels, of other limits, or of none."""

from __future__ import annotations

from typing import Any

import pytest

from streamkernel.daemon.base.errors import CheckpointError
from streamkernel.daemon.runtime import run
from streamkernel.daemon.wiring.plan import prepare
from tests.daemon.conftest import Home
from tests.daemon.labels_stream import adds_up, sections, write_pair


def predicting() -> dict[str, Any]:
    """Mode predict with a directory and outputs of its own."""
    return {
        "mode": "predict",
        "serve_from": "out/state",
        "checkpoint": {"directory": "out/own"},
        "predictions": {"kind": "jsonl", "path": "out/own.jsonl"},
        "dead_letters": {"kind": "jsonl", "path": "out/own-dead.jsonl"},
    }


class TestWhatItGoesOnFrom:
    @pytest.fixture
    def here(self, home: Home) -> Home:
        write_pair(home.folder, "jsonl", 500)
        home.configure(**sections())
        return home

    @pytest.mark.parametrize(
        ("labels", "difference"),
        [
            (None, "labels is set in the checkpoint and not in the configuration"),
            ({"key": "colour"}, "labels.key is 'id' in the checkpoint and 'colour' in the configuration"),
            (
                {"source": {"kind": "jsonl", "path": "labels.jsonl", "target": "z"}},
                "labels.source.target is 'y' in the checkpoint and 'z' in the configuration",
            ),
            (
                {"source": {"kind": "csv", "path": "labels.jsonl", "target": "y"}},
                "labels.source.kind is 'jsonl' in the checkpoint and 'csv' in the configuration",
            ),
        ],
    )
    def test_other_labels_are_refused(self, here: Home, labels: dict[str, Any] | None, difference: str) -> None:
        run(prepare(here.config), max_records=300)
        made = sections(**(labels or {}))
        if labels is None:
            made["labels"] = None
        with pytest.raises(CheckpointError) as caught:
            run(prepare(here.configure(**made)))
        assert difference in str(caught.value)

    def test_other_limits_are_taken(self, here: Home) -> None:
        run(prepare(here.config), max_records=300)
        assert here.header()["labels"]["pending"] > 20
        run(prepare(here.configure(**sections(max_pending=20, timeout_seconds=5))), max_records=100)
        assert here.header()["labels"]["pending"] <= 20
        adds_up(here.header())

    def test_labels_may_come_to_a_model_that_had_none(self, here: Home) -> None:
        run(prepare(here.configure(**{**sections(), "labels": None})), max_records=250)
        before = here.header()["account"]
        run(prepare(here.configure(**sections())))
        header = here.header()
        assert header["account"]["consumed"] == before["consumed"] + header["labels"]["account"]["kept"] + (
            header["account"]["learnt"] - before["learnt"] - header["labels"]["account"]["matched"]
        ) + sum(header["account"][name] - before[name] for name in ("unlabelled", "skipped", "dead"))
        assert header["labels"]["account"]["matched"] > 100

    def test_a_model_that_serves_is_judged_by_the_labels_and_learns_nothing(self, here: Home) -> None:
        run(prepare(here.config), max_records=300)
        before = here.header()
        view = run(prepare(here.configure(**{**sections(), **predicting()})))
        after = here.header("out/own")
        assert after["model"] == before["model"]
        assert after["account"]["learnt"] == 0
        assert after["labels"]["account"]["matched"] > 200
        assert view.overall["accuracy"] > 0.6
        assert here.header() == before

    def test_a_model_that_serves_may_do_without(self, here: Home) -> None:
        run(prepare(here.config), max_records=300)
        run(prepare(here.configure(**{**sections(), "labels": None, **predicting()})))
        account = here.header("out/own")["account"]
        assert account["consumed"] == len((here.folder / "records.jsonl").read_text().splitlines())
        assert account["predicted"] > 450

    def test_records_that_wait_are_given_up_without_labels(self, here: Home, caplog: pytest.LogCaptureFixture) -> None:
        run(prepare(here.config), max_records=300)
        run(prepare(here.configure(**{**sections(), **predicting()})), max_records=150)
        run(prepare(here.configure(**{**sections(), "labels": None, **predicting()})))
        assert "labels is set in the checkpoint and not in the configuration" in caplog.text
        assert "records that wait for labels are given up" in caplog.text

    def test_labels_of_a_file_that_was_replaced_are_refused(self, here: Home) -> None:
        run(prepare(here.config), max_records=300)
        (here.folder / "labels.jsonl").write_text('{"id": 1, "y": "yes"}\n' * 500)
        with pytest.raises(Exception, match=r"labels\.jsonl: "):
            run(prepare(here.config))
