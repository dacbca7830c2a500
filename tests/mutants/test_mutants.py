"""The list of mutants fits the code, and a mutated place gives the mutant only while that is active."""

from __future__ import annotations

import builtins
from pathlib import Path
from typing import Any

import pytest

from tests.mutants import listed
from tests.mutants.candidates import find_candidates
from tests.mutants.instrument import rewritten
from tests.mutants.listed import Mutant

SOURCE = """
def clipped(values, limit=3):
    "Numbers of a docstring, like 7, are left alone."
    if not values:
        raise ValueError(f"got {len(values) + 0} values")
    return [min(value, limit) for value in values[:2]]
"""


def test_the_list_holds_four_hundred_mutants_of_the_code() -> None:
    assert sum(each.place is not None for each in listed.read()) >= 400


def test_each_mutant_changes_what_a_function_does_and_only_while_it_is_active(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "code.py").write_text(SOURCE)
    found = find_candidates(tmp_path, "code.py")
    active = {0}
    monkeypatch.setattr(builtins, "__mutant__", active.__contains__, raising=False)

    def results(number: int, candidate: Any) -> tuple[Any, Any]:
        names: dict[str, Any] = {}
        exec(rewritten(SOURCE.encode(), [Mutant(number, candidate.key, candidate)]), names)
        answers = []
        for each in (0, number):
            active.clear()
            active.add(each)
            try:
                answers.append(names["clipped"]([1, 5, 2]))
            except ValueError:
                answers.append("refused")
        return answers[0], answers[1]

    changed = {each.key.operator: results(number, each) for number, each in enumerate(found, 1)}
    assert changed == {
        "condition-true": ([1, 3], "refused"),
        "condition-false": ([1, 3], [1, 3]),
        "drop-not": ([1, 3], "refused"),
        "return-none": ([1, 3], None),
        "min-max": ([1, 3], [3, 5]),
        "constant": ([1, 3], [1, 3, 2]),
    }


def test_a_mutant_is_found_again_after_other_lines_have_changed(tmp_path: Path) -> None:
    (tmp_path / "code.py").write_text(SOURCE)
    before = [each.key for each in find_candidates(tmp_path, "code.py")]
    (tmp_path / "code.py").write_text("import os\n\nLIMIT = 1 + 2\n" + SOURCE)
    assert [each.key for each in find_candidates(tmp_path, "code.py")] == before
