"""The fuzz finds what goes wrong, and a few seconds of it find nothing."""

import json
import math
import random

import pytest

from benchmarks.fuzz import process_clock, watch
from benchmarks.fuzz.__main__ import TARGETS, report
from benchmarks.fuzz.child import draw_of, made
from benchmarks.fuzz.mutation import altered, mutated, odd
from benchmarks.fuzz.target import unexpected
from tests.registry.needs import needed


@pytest.mark.usefixtures("processes")
@pytest.mark.parametrize(
    ("stub", "sentence"),
    [
        ("Crashing", "the process ended with status -6"),
        ("Hanging", "it hung for more than 0.3 s"),
        pytest.param("Finding", "a finding", marks=pytest.mark.long),
        pytest.param("Growing", "the memory grew by 1", marks=pytest.mark.long),
    ],
)
def test_what_goes_wrong_is_found_and_the_other_cases_are_tried(stub, sentence, tmp_path, monkeypatch):
    monkeypatch.setattr(watch, "HANG_SECONDS", 0.3 if stub == "Hanging" else 5.0)
    monkeypatch.setattr(watch, "GROWTH_MB", 64)
    tried = watch.tried(f"tests.fuzz.stubs.{stub}", 7, 1.5, tmp_path)
    ((case, finding),) = tried.found
    assert finding.startswith(sentence)
    assert case == (-1 if stub == "Growing" else 3)
    assert tried.cases > 3
    assert f"- x, case {case}: {sentence}" in report({"x": tried}, 7)[-1]


def test_the_time_in_line_for_a_processor_is_not_a_process_own(monkeypatch):
    waited = {"1": 500.0, "2": 1.0}
    monkeypatch.setattr(process_clock, "_in_line", lambda _: waited)
    spent = process_clock.ProcessClock(7)
    assert spent.seconds >= 0
    waited = {"2": 101.0, "3": 2.0}
    assert -100 <= spent.seconds < -90
    spent.renew()
    assert spent.seconds >= 0


@pytest.mark.usefixtures("processes")
def test_a_target_that_does_not_start_is_found_once(tmp_path):
    tried = watch.tried("tests.fuzz.stubs.Failing", 7, 60.0, tmp_path)
    ((_, finding),) = tried.found
    assert finding == "the process ended with status 1: RuntimeError: no start"
    assert tried.cases == 0


def test_a_case_is_the_same_whenever_it_is_tried():
    assert draw_of(1, "a.b.Records", 7).random() == draw_of(1, "Records", 7).random()
    assert draw_of(1, "Records", 7).random() != draw_of(1, "Records", 8).random()


def test_what_is_altered_stays_json_and_differs():
    book = {"a": [1, {"b": None}], "c": {"d": "x", "e": [2.5, True]}}
    draw = random.Random(1)
    changed = sum(altered(draw, book) != book for _ in range(300))
    assert changed > 250
    for _ in range(300):
        json.dumps(odd(draw))
        assert isinstance(mutated(draw, b"some bytes"), bytes)
    assert mutated(draw, b"") is not None


def test_only_errors_the_daemon_does_not_know_are_findings():
    assert unexpected(OSError(2, "No such file", "a")) is None
    with pytest.raises(KeyError) as caught:
        {}["missing"]
    assert unexpected(caught.value).startswith("unexpected KeyError")


@pytest.mark.parametrize(
    ("target", "cases"), [("records", 3), ("checkpoints", 10), ("configurations", 20), ("marks", 20), ("values", 300)]
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
