"""A warm start whose file is solved to its end: once, whatever kills the daemon around it."""

from __future__ import annotations

import csv
import errno
import logging
import re
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from streamkernel import WindowRefit
from streamkernel.daemon.assembly.model import build_model
from streamkernel.daemon.assembly.plan import prepare
from streamkernel.daemon.base.errors import DaemonError
from streamkernel.daemon.check import check
from streamkernel.daemon.checkpoints.store import CheckpointStore
from streamkernel.daemon.evaluate import evaluate
from streamkernel.daemon.run_state.models import published_entry
from streamkernel.daemon.runtime import run
from streamkernel.daemon.stream.stop import StopSignals
from tests.daemon.configurations import GOOD, lines_of
from tests.daemon.conftest import Home, write_stream
from tests.daemon.refits import INNER, refitted
from tests.daemon.test_several_models import several
from tests.kills.simulated import runs

SOURCE = {"kind": "csv", "path": "history.csv", "target": "y"}


@pytest.fixture
def warm(here: Home) -> Home:
    write_stream(here.folder / "history.csv", 700, seed=1, bad=False)
    return here


def n_refits(home: Home) -> int:
    return int(published_entry(home.header())["n_refits"])


def digest_after(home: Home, at_the_end: bool) -> str:
    """What the model of `refitted` comes to over the history alone."""
    model = build_model(refitted())
    assert isinstance(model, WindowRefit)
    with (home.folder / "history.csv").open() as file:
        for row in csv.DictReader(file):
            x = {name: row[name] or None for name in ("a", "b", "color")}
            numbers = {name: None if x[name] is None else float(x[name]) for name in "ab"}
            model.learn_one({**numbers, "color": x["color"]}, row["y"])
    if at_the_end:
        model.refit()
    return model.state_digest()


@pytest.mark.parametrize(("asked", "at_the_end"), [({}, True), ({"refit": True}, True), ({"refit": False}, False)])
def test_the_file_is_solved_behind_its_last_record(
    warm: Home, caplog: pytest.LogCaptureFixture, asked: dict[str, Any], at_the_end: bool
) -> None:
    caplog.set_level(logging.INFO)
    (warm.folder / "stream.csv").write_text("a,b,color,y\n")
    run(prepare(warm.configure(model=refitted(), warm_start={"source": SOURCE, **asked})))
    assert warm.header()["warm_start"]["done"]
    assert n_refits(warm) == 2 + at_the_end
    assert published_entry(warm.header())["state_digest"] == digest_after(warm, at_the_end)
    said = re.findall(r"the model was refitted on its last (\d+) records in", caplog.text)
    assert said == ["300", "500", "500"][: 2 + at_the_end]


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Home:
    home = Home(tmp_path_factory.mktemp("undisturbed"))
    prepared(home.folder)
    assert runs(home) == 0
    return home


def prepared(folder: Path) -> None:
    write_stream(folder / "history.csv", 700, seed=1)
    write_stream(folder / "stream.csv", 400)
    Home(folder).configure(warm_start={"source": SOURCE}, model=refitted())


def test_all_of_several_models_are_refitted(warm: Home) -> None:
    (warm.folder / "stream.csv").write_text("a,b,color,y\n")
    plain = [INNER]
    source, models = {**SOURCE, "path": "stream.csv"}, {"plain": plain, "one": refitted()}
    run(several(warm, source=source, models=models, warm_start={"source": SOURCE}))
    models = warm.header()["models"]["learners"]
    assert models["one"]["model"]["n_refits"] == 3
    assert "n_refits" not in models["plain"]["model"]
    assert models["one"]["model"]["state_digest"] == digest_after(warm, at_the_end=True)


def test_one_that_cannot_be_refitted_ends_the_run_or_is_disabled(warm: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_: Any) -> None:
        raise ValueError("the window is singular: raise l2 of the solver")

    monkeypatch.setattr(WindowRefit, "refit", refuse)
    asked = {"model": refitted(every=10_000), "warm_start": {"source": SOURCE}}
    with pytest.raises(DaemonError, match="cannot be refitted after the warm start: the window is singular: raise l2"):
        run(prepare(warm.configure(**asked)))
    assert not warm.header()["warm_start"]["done"]
    run(prepare(warm.configure(**{**asked, "warm_start": {"source": SOURCE, "refit": False}})))
    assert warm.header()["source"]["account"]["consumed"] == 400
    models = {"plain": [INNER], "one": refitted(every=10_000)}
    source = {**SOURCE, "path": "stream.csv"}
    run(several(warm, source=source, models=models, warm_start={"source": SOURCE}), fresh=True)
    assert warm.header()["models"]["learners"]["one"]["disabled"].startswith("ValueError: the window is singular")
    assert "disabled" not in warm.header()["models"]["learners"]["plain"]


def test_a_file_with_nothing_to_solve_goes_on(warm: Home, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    (warm.folder / "history.csv").write_text("a,b,color,y\n" + 250 * "1.0,2.0,red,yes\n")
    run(prepare(warm.configure(model=refitted(), warm_start={"source": SOURCE})))
    assert "the model was not refitted: its window has nothing to solve" in caplog.text
    assert warm.header()["warm_start"]["done"]


def test_a_stop_in_the_midst_of_the_refit_is_honoured(warm: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []
    monkeypatch.setattr(StopSignals, "at_work", lambda _, at_work: seen.append(at_work))
    monkeypatch.setattr(WindowRefit, "refit", lambda _: seen.append("refit"))
    run(prepare(warm.configure(model=refitted(every=10_000), warm_start={"source": SOURCE})))
    where = seen.index("refit")
    assert seen[where - 1 : where + 2] == [True, "refit", False]


def test_check_and_evaluate_know_of_it(warm: Home) -> None:
    plan = prepare(warm.configure(model=refitted(), warm_start={"source": SOURCE}, checkpoint=None))
    found = check(plan)
    assert found.bad == []
    assert "warm_start: csv file history.csv, and the model is refitted after it" in found.good
    view = evaluate(plan, StopSignals()).view
    ran = run(prepare(warm.config))
    assert ran.overall == pytest.approx(view.overall)


def test_a_refit_of_nothing_is_refused(tmp_path: Path) -> None:
    section = "warm_start: {refit: true, source: {kind: csv, path: b.csv, target: y}}\n"
    (line,) = lines_of(tmp_path, GOOD + section)
    assert line == "warm_start.refit: no model is a streamkernel.WindowRefit: leave it out"
    assert lines_of(tmp_path, GOOD + section.replace("true", "often")) == [
        "warm_start.refit: must be true or false, got 'often'"
    ]


def test_a_disk_that_is_full_at_the_seam_is_named_with_what_is_saved_and_a_restart_goes_on(
    warm: Home, undisturbed: Home, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    prepared(warm.folder)

    def full_behind_the_file(store: CheckpointStore, header: Mapping[str, Any], payload: bytes) -> Path:  # noqa: ARG001
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(time, "sleep", lambda _: None)
        # The last one of the file is of the same record as that before its refit, and takes its place.
        patched.setattr(CheckpointStore, "replace", full_behind_the_file)
        with pytest.raises(DaemonError, match="the last checkpoint could not be written: No space left on device"):
            run(prepare(warm.folder / "config.yaml"))
    assert "everything up to record 700 of the warm start is saved: a restart continues there" in caplog.text
    assert not warm.header()["warm_start"]["done"]
    run(prepare(warm.folder / "config.yaml"))
    assert published_entry(warm.header()) == published_entry(undisturbed.header())


def test_a_stop_in_the_midst_of_the_file_says_what_is_saved(warm: Home, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    prepared(warm.folder)
    run(prepare(warm.folder / "config.yaml"), max_records=430)
    assert "--max-records is reached during the warm start" in caplog.text
    assert "everything up to record 430 of the warm start is saved: a restart continues there" in caplog.text
