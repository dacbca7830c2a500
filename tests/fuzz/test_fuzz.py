"""Some seconds of the fuzz find nothing."""

import math

import pytest

from benchmarks.fuzz import watch
from benchmarks.fuzz.__main__ import TARGETS
from benchmarks.fuzz.child import draw_of, made
from tests.registry.needs import needed


def test_a_case_is_the_same_whenever_it_is_tried():
    assert draw_of(1, "a.b.Records", 7).random() == draw_of(1, "Records", 7).random()
    assert draw_of(1, "Records", 7).random() != draw_of(1, "Records", 8).random()


@pytest.mark.parametrize(
    ("target", "cases"),
    [("records", 3), ("checkpoints", 10), ("configurations", 20), ("marks", 20), ("values", 300), ("scanners", 10)],
)
def test_a_few_cases_find_nothing(target, cases, tmp_path):
    if target == "values":
        needed("fastavro")
    fuzzed = made(TARGETS[target], tmp_path / "work")
    found = {case: fuzzed.case(draw_of(1, TARGETS[target], case)) for case in range(cases)}
    assert {case: sentence for case, sentence in found.items() if sentence is not None} == {}


@pytest.mark.long
@pytest.mark.parametrize("target", TARGETS)
def test_twenty_seconds_find_nothing(target, tmp_path):
    if target == "values":
        needed("fastavro")
    tried = watch.tried(TARGETS[target], 2, 20.0, tmp_path)
    assert (tried.found, math.isfinite(tried.growth_mb)) == ([], True)
