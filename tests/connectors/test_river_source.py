from __future__ import annotations

import datetime
import math
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
from draining import drain
from river import datasets
from river.datasets import base, synth

from streamkernel.connectors import Position, Record, RiverSource, SourceError

SYNTHETIC = sorted(set(synth.__all__) - {"Logical"})


def seeds(name: str) -> dict[str, int]:
    kind = getattr(synth, name)
    return {
        seed: 1
        for seed in ("seed", "seed_model", "seed_sample", "seed_tree")
        if seed in kind.__init__.__code__.co_varnames
    }


def first(source: RiverSource, count: int, positions: dict[int, Position] | None = None) -> list[Record]:
    with source:
        source.open(positions)
        return source.poll(count, timeout=0)


@pytest.mark.parametrize("name", SYNTHETIC)
def test_synthetic_data_sets_are_the_same_each_time(name: str) -> None:
    source = RiverSource(f"synth.{name}", seeds(name))
    assert source.resumable
    records = first(source, 50)
    assert len(records) == 50
    assert all(record.fault is None for record in records)
    assert all(type(key) is str for record in records for key in record.x)
    assert first(source, 50) == records
    assert first(source, 20, {0: records[29].next}) == records[30:]
    assert [record.position.offset for record in records] == list(range(50))
    x, y = next(iter(getattr(synth, name)(**seeds(name))))
    assert records[0].x == {str(key): value for key, value in x.items()}
    assert records[0].y == y


@pytest.mark.parametrize("name", SYNTHETIC)
def test_without_a_seed_nothing_is_resumed(name: str) -> None:
    source = RiverSource(f"synth.{name}")
    assert not source.resumable
    position = first(source, 1)[0].next
    with pytest.raises(SourceError, match="without a seed it cannot be resumed"):
        source.open({0: position})


def test_the_end() -> None:
    source = RiverSource("TrumpApproval")
    records = drain(source, at_once=100)
    assert len(records) == 1001
    assert drain(source, {0: records[999].next}) == records[1000:]
    assert drain(source, {0: records[-1].next}) == []
    with pytest.raises(SourceError, match=r"1,001 records.* 1,002"):
        source.open({0: records[-1].next._replace(offset=1002)})


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("Banana", r"river has no data set 'Banana', did you mean 'Bananas'\?"),
        ("Friedman", r"did you mean 'synth.Friedman"),
        ("base", "has no data set 'base'"),
        ("synth", "has no data set 'synth'"),
        ("base.Dataset", "has no data set"),
        ("synth.base.Dataset", "has no data set"),
        ("os.system", "has no data set"),
        ("__class__", "has no data set"),
        ("bananas.Bananas", "has no data set"),
        ("", "has no data set ''"),
        ("Yeast", "Yeast: its records have several targets"),
        ("synth.Logical", "Logical: its records have several targets"),
    ],
)
def test_what_is_no_data_set_of_river_is_refused(name: str, message: str) -> None:
    with pytest.raises(SourceError, match=message):
        RiverSource(name)


def test_a_position_of_another_source_is_refused() -> None:
    position = first(RiverSource("synth.SEA", {"seed": 1}), 1)[0].next
    for other in (RiverSource("synth.SEA", {"seed": 2}), RiverSource("Bananas")):
        with pytest.raises(SourceError, match=r"position .* synth\.SEA.*--fresh"):
            other.open({0: position})


def test_nothing_is_downloaded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RIVER_DATA", str(tmp_path / "river"))
    monkeypatch.setattr(base.request, "urlopen", lambda *_: pytest.fail("it went to the network"))
    source = RiverSource("Elec2")
    with pytest.raises(SourceError, match=r"Elec2: .*datasets\.Elec2\(\)\.download\(\)"):
        source.open()
    assert not os.path.exists(tmp_path / "river")
    (tmp_path / "river").mkdir()
    with pytest.raises(SourceError, match=r"download it first: .*datasets\.Elec2\(\)\.download\(\)"):
        source.open()


class _Given(base.Dataset):
    """What the test wants a data set to be."""

    pairs: ClassVar[list[Any]] = []

    def __init__(self) -> None:
        super().__init__(task=base.REG, n_features=1)

    def __iter__(self) -> Iterator[Any]:
        for pair in self.pairs:
            if isinstance(pair, Exception):
                raise pair
            yield pair


@pytest.fixture
def given(monkeypatch: pytest.MonkeyPatch) -> type[_Given]:
    monkeypatch.setattr(datasets, "Given", _Given, raising=False)
    monkeypatch.setattr(datasets, "__all__", [*datasets.__all__, "Given"])
    return _Given


NOON = datetime.datetime(2024, 1, 2, 12)
EAST = datetime.timezone(datetime.timedelta(hours=12))


@pytest.mark.parametrize(
    ("value", "plain"),
    [
        (np.float64(1.5), 1.5),
        (np.int32(3), 3),
        (np.bool_(True), True),
        (np.str_("a"), "a"),
        (NOON, NOON.toordinal() + 0.5),
        (NOON.replace(tzinfo=EAST), float(NOON.toordinal())),
        (NOON.date(), float(NOON.toordinal())),
        (None, None),
        (math.nan, None),
        (np.float32("nan"), None),
        ("", None),
    ],
)
def test_values(given: type[_Given], value: Any, plain: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(given, "pairs", [({1: value}, 1.0)])
    (record,) = drain(RiverSource("Given"))
    assert record.fault is None
    assert record.x == ({} if plain is None else {"1": plain})
    assert plain is None or type(record.x["1"]) is type(plain)


@pytest.mark.parametrize(
    ("x", "y", "reason"),
    [
        ({"a": math.inf}, 1.0, "infinite"),
        ({"a": [1]}, 1.0, "nested"),
        ({"a": object()}, 1.0, "nested"),
        ({"a": "x" * 300}, 1.0, "string_too_long"),
        ({"a": 1}, math.inf, "target"),
        ({"a": 1}, [1], "target"),
        ({"a": 1}, "x" * 300, "string_too_long"),
    ],
)
def test_faults(given: type[_Given], x: Any, y: Any, reason: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(given, "pairs", [(x, y), ({"a": 2}, math.nan)])
    bad, good = drain(RiverSource("Given"))
    assert bad.fault is not None
    assert bad.fault.reason == reason
    assert (bad.x, bad.y) == ({}, None)
    assert bad.raw.startswith(b'{"x":{"a":')
    assert (good.x, good.y, good.raw) == ({"a": 2}, None, b'{"x":{"a":2},"y":NaN}')


def test_a_data_set_that_fails_is_an_error_after_its_records(
    given: type[_Given], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(given, "pairs", [({"a": 1}, 1.0), ({"a": 2}, 2.0), RuntimeError("no disk")])
    source = RiverSource("Given")
    source.open()
    assert len(source.poll(10, timeout=0)) == 2
    assert not source.exhausted
    for _ in range(2):
        with pytest.raises(SourceError, match=r"Given: .* record 2: RuntimeError\('no disk'\)"):
            source.poll(10, timeout=0)
