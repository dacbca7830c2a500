"""The columns of a CSV file of predictions: classes, what passes through, and other ones after a restart."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import pytest

from streamkernel.connectors import CsvSink, SinkError

LINE = {"position": {"offset": 1}, "prediction": "a", "probabilities": {"a": 0.75, "b": 0.25}, "id": "x"}


def written(path: Path, *lines: dict[str, Any], **how: Any) -> list[list[str]]:
    with CsvSink(path, **how) as sink:
        sink.open()
        sink.write(lines)
    return list(csv.reader(path.read_text().splitlines()))


def test_classes_are_columns(tmp_path: Path) -> None:
    rows = written(tmp_path / "p.csv", LINE, {**LINE, "probabilities": {}}, classes=["b"], included=["id"])
    assert rows[0] == ["position", "prediction", "probability_b", "other_probability", "id"]
    assert [row[2:4] for row in rows[1:]] == [["0.25", "0.75"], ["", ""]]


class TestAnotherSetOfColumns:
    """A file that is gone on with has the columns it had."""

    OTHER = r"p\.csv: has the columns .*, and those of include and classes are now .*: change them back, give another"

    def begun(self, path: Path, **how: Any) -> Any:
        with CsvSink(path, **how) as sink:
            sink.open()
            sink.write([LINE])
            return sink.flush()

    @pytest.mark.parametrize("more", [{"included": ["id", "zip"]}, {"included": ["id"], "classes": ["a"]}])
    def test_more_are_refused_at_once(self, tmp_path: Path, more: dict[str, Any]) -> None:
        mark = self.begun(tmp_path / "p.csv", included=["id"])
        before = (tmp_path / "p.csv").read_bytes()
        for act in (CsvSink.find_problem, CsvSink.open):
            with pytest.raises(SinkError, match=self.OTHER):
                act(CsvSink(tmp_path / "p.csv", **more), mark)
        assert (tmp_path / "p.csv").read_bytes() == before

    def test_classes_that_are_not_named_any_more_are_refused_with_the_first_line(self, tmp_path: Path) -> None:
        mark = self.begun(tmp_path / "p.csv", included=["id"], classes=["a"])
        with CsvSink(tmp_path / "p.csv", included=["id"]) as sink:
            sink.open(mark)
            with pytest.raises(SinkError, match=self.OTHER):
                sink.write([LINE])
