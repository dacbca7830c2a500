"""The names that a model of River's is given: bounded, counted, and the same after any kill."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from typing import Any

import pytest

from streamkernel.daemon.assembly.plan import prepare
from streamkernel.daemon.runtime import run
from streamkernel.daemon.stream.input_names import InputNames
from tests.daemon.conftest import Home
from tests.daemon.test_calibration import served
from tests.kills.simulated import killed, runs

RECORDS, NEW, MOST = 300, 20, 300


def write(home: Home, **sections: Any) -> Home:
    """Write records that bring twenty new names each, one known one, and now and then no label."""
    draw = random.Random(0)
    lines = []
    for number in range(RECORDS):
        inputs = {f"name {number} {place}": draw.random() for place in range(NEW)} | {"a": draw.gauss(number % 2, 0.5)}
        lines.append(json.dumps(inputs | ({} if number % 7 == 3 else {"y": "pq"[number % 2]})))
    (home.folder / "stream.jsonl").write_text("\n".join(lines) + "\n")
    home.configure(
        source={"kind": "jsonl", "path": "stream.jsonl", "target": "y"},
        checkpoint={"directory": "out/state", "every_records": 100},
        limits={"max_inputs": MOST},
        **{"model": ["river.naive_bayes.GaussianNB"], **sections},
    )
    return home


def test_kills_change_nothing_and_checkpoints_do_not_grow(
    homes: Callable[[str], Home], capsys: pytest.CaptureFixture[str]
) -> None:
    undisturbed, home = write(homes("undisturbed")), write(homes("killed"))
    assert runs(undisturbed) == 0
    said = capsys.readouterr().err
    assert "inputs were ignored" in said
    assert "limits.max_inputs is reached" in said
    for count in (70, 30, 90):
        killed(home, f"consumed:{count}")
    assert runs(home) == 0
    assert home.result() == undisturbed.result()
    sizes = [path.stat().st_size for path in sorted((home.folder / "out/state").glob("*.skc"))]
    assert sizes[-1] < 1.1 * sizes[-2]


@pytest.mark.usefixtures("processes")
def test_what_is_ignored_is_counted(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    exporters = served(monkeypatch)
    run(prepare(write(home, metrics={"port": 0}).config))
    learned = sum(number % 7 != 3 for number in range(RECORDS))
    ignored = exporters[-1].registry.get_sample_value("streamkernel_ignored_inputs_total")
    assert ignored == learned * NEW + 1 - MOST


class TestNames:
    def test_the_first_ones_to_be_learned_have_the_room(self) -> None:
        names = InputNames(3)
        assert names.bound({"p": 1, "q": 1, "r": 1}, learn=False) == ({"p": 1, "q": 1, "r": 1}, 0)
        assert names.bound({"p": 1, "q": 1, "r": 1, "s": 1}, learn=False)[1] == 1
        assert names.bound({"a": 1, "b": 2}, learn=True) == ({"a": 1, "b": 2}, 0)
        assert names.bound({"x": 9, "b": 2, "y": 8, "a": 1}, learn=True) == ({"x": 9, "b": 2, "a": 1}, 1)
        assert names.knows({"a": 1, "b": 1, "x": 1})
        assert names.bound({"p": 1, "a": 2}, learn=False) == ({"a": 2}, 1)

    def test_a_restart_knows_them(self) -> None:
        names = InputNames(4)
        names.bound({"a": 1, "\ud800": 2, 7: 3, "7": 4}, learn=True)  # type: ignore[dict-item]
        again = InputNames(4, names.to_text())
        assert again.bound({"b": 1, 7: 2, "\ud800": 3}, learn=False) == ({7: 2, "\ud800": 3}, 1)  # type: ignore[dict-item]
        assert again.to_text() == names.to_text()
