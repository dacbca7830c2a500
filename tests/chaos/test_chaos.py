"""Whatever fails: nothing is lost, nothing comes twice, the model is the same, and one line of the log says it.

The short form of every failure; `python -m tests.chaos` tries them often, and on every configuration.
"""

from __future__ import annotations

import pytest

from tests.chaos import points
from tests.chaos.failure import Failure, run
from tests.chaos.failures import ALL
from tests.chaos.failures.process import PLACES_OF_WARM_START
from tests.chaos.settings import JOURNAL, LOGGED, PLAIN, TRANSACTIONS, WATCHED, Setting
from tests.chaos.site import Site
from tests.chaos.soak import soak
from tests.daemon.test_kill import PLACES as PLACES_OF_THE_SERVICE


def check(site: Site, failures: list[Failure], setting: Setting, long: bool = False) -> None:
    found = run(site, failures, setting, long=long).findings
    assert found.good, "\n".join(found.faults)
    assert found.digest is True or not setting.reproducible
    assert found.records > 0


@pytest.mark.parametrize("failure", [each for each in ALL if each.short and not each.death], ids=lambda each: each.name)
def test_nothing_is_lost_and_nothing_comes_twice(site: Site, failure: Failure) -> None:
    check(site, [failure], failure.settings[0])


@pytest.mark.parametrize(
    "setting",
    [*(pytest.param(each, marks=pytest.mark.long) for each in (PLAIN, LOGGED, WATCHED)), TRANSACTIONS, JOURNAL],
    ids=lambda each: each.name,
)
def test_the_daemon_dies_at_every_known_place(site: Site, setting: Setting) -> None:
    """One after the other, on one stream: each leaves what the next one finds."""
    check(site, [each for each in ALL if each.death and setting in each.settings], setting)


def test_every_known_place_is_tried() -> None:
    tried = {each.name.removeprefix("crash point ") for each in ALL if each.name.startswith("crash point ")}
    assert tried | PLACES_OF_WARM_START | set(PLACES_OF_THE_SERVICE) | points.SPARK == points.ALL
    assert {"consumed", "mid-batch", "checkpoint-writing"} <= points.ALL


def test_none_is_waited_for_that_the_run_does_not_pass() -> None:
    """A daemon that lives on is waited for in vain."""
    tried = {each.name.removeprefix("crash point ") for each in ALL if each.name.startswith("crash point ")}
    assert tried == points.RUN
    assert not tried & points.SERVICE
    assert "seam" in points.WARM_START - tried


@pytest.mark.long
@pytest.mark.parametrize(
    ("failure", "setting"),
    [(each, setting) for each in ALL for setting in each.settings],
    ids=lambda each: each.name,
)
def test_on_every_configuration(site: Site, failure: Failure, setting: Setting) -> None:
    check(site, [failure], setting, long=True)


@pytest.mark.long
def test_harm_without_end(site: Site) -> None:
    """For a minute; `python -m tests.chaos.soak` runs for half an hour."""
    soaked = soak(site, 60.0)
    assert soaked.findings.good, "\n".join(soaked.findings.faults)
    assert soaked.findings.digest is True
    assert soaked.findings.records > 0
    assert soaked.lives > 1
    assert soaked.done["SIGKILLs of the daemon"] > 0
    assert soaked.done["SIGKILLs of the broker"] > 0
