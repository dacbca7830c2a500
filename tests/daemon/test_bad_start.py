"""A source whose first records cannot be used: `check` fails, a run stops, unless it is told to go on."""

from __future__ import annotations

from typing import Any

import pytest

from streamkernel.daemon.assembly.plan import prepare
from streamkernel.daemon.check import check
from streamkernel.daemon.runtime import run
from streamkernel.daemon.stream.ending import TooManyDeadLettersError
from tests.daemon.conftest import Home

NESTED = '{"a": {"b": 1}, "y": "p"}\n'
GOOD = '{"a": 1, "y": "p"}\n'


def configured(home: Home, content: str, **bad: Any) -> Any:
    (home.folder / "x.jsonl").write_text(content)
    source = {"kind": "jsonl", "path": "x.jsonl", "target": "y"}
    return prepare(home.configure(source=source, dead_letters={"kind": "jsonl", "path": "dead.jsonl", **bad}))


def test_check_fails_where_no_first_record_can_be_used(home: Home) -> None:
    (said,) = check(configured(home, NESTED * 100)).bad
    first = "50 of its first 50 records cannot be used; the first, at line 1 (offset 0): input 'a' is a dict"
    assert first in said
    found = check(configured(home, NESTED + GOOD))
    assert found.bad == []
    assert found.columns[0] == "columns of source, by its first record that can be used:"
    assert check(configured(home, NESTED * 100, at_start="go_on")).bad == []
    assert any(
        "; 2 of its first 3 records cannot be used; the first, at line 2 (offset 19): input 'a'" in one
        for one in check(configured(home, GOOD + 2 * NESTED)).good
    )


@pytest.mark.parametrize("every", [7, 50, 1000])
@pytest.mark.parametrize("n_bad", [60, 400])
def test_a_run_stops_after_fifty_and_saves_none_of_them(home: Home, n_bad: int, every: int) -> None:
    """Neither chunks nor checkpoints change that: with a mended configuration they come again."""
    home.every_records = every
    with pytest.raises(TooManyDeadLettersError, match=r"the first 50 records are all dead letters \(the last one: n"):
        run(configured(home, "\n" + NESTED * n_bad + GOOD * 60))
    assert len(home.lines("dead.jsonl")) == 50
    source = {"kind": "jsonl", "path": "x.jsonl", "target": "y", "inputs": {"nested": "flatten"}}
    assert run(prepare(home.configure(source=source, dead_letters=None))).account["learned"] == n_bad + 60


def test_or_warns_at_once_and_goes_on(home: Home, caplog: pytest.LogCaptureFixture) -> None:
    plan = configured(home, NESTED * 400 + GOOD * 600, at_start="go_on")
    assert run(plan).account["learned"] == 600
    (told,) = [line for line in caplog.messages if "are all dead letters" in line]
    assert told.endswith("the source does not match the configuration; the run continues anyway")


def test_one_that_can_be_used_is_enough(home: Home) -> None:
    assert run(configured(home, GOOD + NESTED * 400 + GOOD * 600)).account["dead"] == 400


def test_one_that_is_shorter_fails_at_its_end(home: Home) -> None:
    with pytest.raises(TooManyDeadLettersError, match="none of the 20 records could be used"):
        run(configured(home, NESTED * 20))
