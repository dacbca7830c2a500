"""What happens to a file while no daemon reads it must cost no record, and none may be learnt as another one."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from connectors.memory import MemorySink
from streamkernel.daemon.runtime import run
from streamkernel.daemon.wiring.plan import prepare
from tests.daemon.conftest import Home, Launcher

MODEL = [{"river.linear_model.LogisticRegression": {}}]
COLUMNS = [f"measurement_{number}" for number in range(300)]
HEADER = ",".join([*COLUMNS, "y"]) + "\n"


def rows(first: int, count: int) -> str:
    return "".join(f"{number}{299 * ',0'},{number % 2}\n" for number in range(first, first + count))


@pytest.fixture
def wide(home: Home) -> Home:
    """A home with a source whose header is longer than what a file was once known by."""
    (home.folder / "stream.csv").write_text(HEADER + rows(0, 250))
    home.configure(model=MODEL)
    return home


def test_a_replaced_file_of_the_same_header_is_refused(wide: Home, launcher: Launcher) -> None:
    assert launcher.call(wide, "run", "config.yaml", "--max-records", "100").returncode == 0
    before = wide.result()
    (wide.folder / "stream.csv").write_text(HEADER + rows(1000, 250))
    ended = launcher.call(wide, "run", "config.yaml")
    assert ended.returncode == 1
    assert "stream.csv: the file was replaced since the checkpoint" in ended.stderr
    assert "Traceback" not in ended.stderr
    assert wide.result() == before


@pytest.mark.parametrize("learnt", [0, 300])
def test_a_rotation_while_the_daemon_is_down(wide: Home, launcher: Launcher, learnt: int) -> None:
    """Also of a file of which no record was learnt yet."""
    log = wide.folder / "stream.csv"
    source = {"kind": "csv", "path": "stream.csv", "target": "y", "follow": True}
    wide.configure(model=MODEL, source=source)
    log.write_text(HEADER + rows(0, 300))
    assert launcher.call(wide, "run", "config.yaml", "--max-records", str(learnt)).returncode == 0
    for part in (1, 2):
        for older in range(part, 0, -1):
            (log if older == 1 else Path(f"{log}.{older - 1}")).rename(f"{log}.{older}")
        log.write_text(HEADER + rows(300 * part, 300))
    assert launcher.call(wide, "run", "config.yaml", "--max-records", str(900 - learnt)).returncode == 0
    account = wide.header()["account"]
    assert (account["consumed"], account["learnt"], account["dead"]) == (900, 900, 0)


def test_a_last_line_that_has_grown_since_it_was_learnt(home: Home, launcher: Launcher) -> None:
    stream = home.folder / "stream.csv"
    home.configure(source={"kind": "csv", "path": "stream.csv", "target": "y"}, model=MODEL)
    stream.write_text("a,y\n" + "1,0\n2,1\n" * 5 + "0,1")
    assert launcher.call(home, "run", "config.yaml").returncode == 0
    before = home.result()
    stream.write_text(stream.read_text() + "23.5\n")
    ended = launcher.call(home, "run", "config.yaml")
    assert ended.returncode == 1
    assert (
        "stream.csv: the last line was learnt as '0,1', without its line end, and has grown to '0,123.5'"
        in ended.stderr
    )
    assert home.result() == before
    stream.write_text(stream.read_text()[:-5] + "\n0,1\n")
    assert launcher.call(home, "run", "config.yaml").returncode == 0
    account = home.header()["account"]
    assert (account["consumed"], account["dead"], account["skipped"]) == (12, 0, 0)


class Stopped(Exception):
    """The power fails."""


def test_an_output_knows_the_records_of_a_file_that_grew(
    homes: Callable[[str], Home], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both lives of the daemon write the same origin beside the prediction of a record: a topic holds it once."""
    told: list[list[Any]] = []

    class Topic(MemorySink):
        """Notes where the records of its lines stand."""

        def write(self, lines: Any, positions: Any = ()) -> None:
            told[-1] += positions
            super().write(lines, positions)

    home = homes("one")
    monkeypatch.chdir(home.folder)
    monkeypatch.setattr("streamkernel.daemon.wiring.parts.make_sink", lambda *_: Topic())
    stream = home.folder / "stream.csv"
    config = home.configure(model=MODEL, checkpoint={"directory": "out/state", "every_records": 10_000})
    stream.write_text("a,y\n" + "1,0\n" * 100)

    def power_fails(_: Any) -> None:
        raise Stopped

    told.append([])
    with monkeypatch.context() as patch:
        patch.setattr("streamkernel.daemon.recovery.coordinator.CheckpointCoordinator.finish", power_fails)
        with pytest.raises(Stopped):
            run(prepare(config), max_records=50)
    stream.write_text(stream.read_text() + "2,1\n" * 5000)
    told.append([])
    run(prepare(config))
    assert len(told[0]) == 50
    assert told[1][:50] == told[0]
