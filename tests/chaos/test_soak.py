"""Harm without end, for some seconds or a minute; `python -m tests.chaos.soak` goes on for half an hour."""

from __future__ import annotations

import pytest

from tests.chaos.site import Site
from tests.chaos.soak import soak


@pytest.mark.parametrize("seconds", [10.0, pytest.param(60.0, marks=pytest.mark.long)])
def test_harm_without_end(site: Site, seconds: float) -> None:
    soaked = soak(site, seconds)
    assert soaked.findings.good, "\n".join(soaked.findings.faults)
    assert soaked.findings.digest is True
    assert soaked.findings.records > 0
    assert soaked.lives > 1
    assert soaked.done["SIGKILLs of the daemon"] > 0
    assert soaked.done["SIGKILLs of the broker"] > 0
