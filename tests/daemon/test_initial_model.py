"""A run that begins with the model of another one: the model alone, once, and exactly what it would go on to be."""

from __future__ import annotations

import shutil
from typing import Any

import pytest

from streamkernel.daemon.assembly.plan import prepare
from streamkernel.daemon.base.errors import CheckpointError
from streamkernel.daemon.check import check
from streamkernel.daemon.evaluate import evaluate
from streamkernel.daemon.run_state.models import published_entry
from streamkernel.daemon.runtime import run
from streamkernel.daemon.stream.stop import StopSignals
from tests.daemon.conftest import Home, write_stream
from tests.daemon.test_warm_start import OURS, RIVER


def beginning(path: str = "out/state", **sections: Any) -> dict[str, Any]:
    return {
        "initial_model": {"checkpoint": path},
        "source": {"kind": "csv", "path": "other.csv", "target": "y"},
        "predictions": {"kind": "jsonl", "path": "next/predictions.jsonl"},
        "dead_letters": {"kind": "none"},
        "checkpoint": {"directory": "next/state", "every_records": 100},
        **sections,
    }


@pytest.mark.parametrize("model", [OURS, RIVER], ids=["ours", "River's"])
def test_it_ends_as_one_run_over_both_streams(here: Home, model: list[Any]) -> None:
    write_stream(here.folder / "other.csv", 300, seed=1)
    run(prepare(here.configure(model=model)))
    run(prepare(here.configure(**beginning(model=model))))
    first, second = here.header(), here.header("next/state")
    assert second["source"]["account"]["consumed"] == 300
    assert len(here.lines("next/predictions.jsonl")) == second["source"]["account"]["predicted"]

    rows = (here.folder / "other.csv").read_text().partition("\n")[2]
    both = (here.folder / "stream.csv").read_text() + rows
    (here.folder / "stream.csv").write_text(both)
    run(prepare(here.configure(model=model)), fresh=True)
    whole = here.header()
    assert (
        whole["source"]["account"]["learned"]
        == first["source"]["account"]["learned"] + second["source"]["account"]["learned"]
    )
    assert published_entry(whole) == published_entry(second)
    parts = [here.lines(f"{folder}/predictions.jsonl") for folder in ("next", "out")]
    assert len(parts[0]) > 200
    names = ("prediction", "probabilities", "target")
    one, other = ([[line[name] for name in names] for line in part[-len(parts[0]) :]] for part in parts)
    assert one == other


def test_it_is_read_once_and_not_needed_afterwards(trained: Home) -> None:
    run(prepare(trained.configure(**beginning())), max_records=100)
    shutil.rmtree(trained.folder / "out/state")
    run(prepare(trained.config))
    assert trained.header("next/state")["source"]["account"]["consumed"] == 400
    with pytest.raises(CheckpointError, match="out/state: there is no such directory or file"):
        run(prepare(trained.config), fresh=True)
    assert trained.header("next/state")["source"]["account"]["consumed"] == 400


def test_another_model_is_refused_before_anything_is_begun(trained: Home) -> None:
    other = [{"streamkernel.KernelClassifier": {"seed": 1, "max_features": 512}}]
    plan = prepare(trained.configure(**beginning(model=other)))
    with pytest.raises(CheckpointError, match=r"^out/state: the checkpoint holds another model .* has 256, conf"):
        run(plan)
    assert not (trained.folder / "next/predictions.jsonl").exists()
    (line,) = check(plan).bad
    assert line.startswith("out/state: the checkpoint holds another model")


def test_check_and_evaluate_begin_with_it(trained: Home) -> None:
    plan = prepare(trained.configure(**beginning(checkpoint=None)))
    assert "model: KernelClassifier, from out/state" in check(plan).good
    warm = evaluate(plan, StopSignals()).view.overall["accuracy"]
    cold = evaluate(prepare(trained.configure(**beginning(checkpoint=None, initial_model=None))), StopSignals())
    assert warm > cold.view.overall["accuracy"]
