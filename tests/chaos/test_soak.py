"""A minute of harm without end; `python -m tests.chaos.soak` runs for half an hour."""

from __future__ import annotations

import pytest

from tests.chaos.site import Site
from tests.chaos.soak import soak


@pytest.mark.long
def test_harm_without_end(site: Site) -> None:
    soaked = soak(site, 60.0)
    assert soaked.findings.good, "\n".join(soaked.findings.faults)
    assert soaked.findings.digest is True
    assert soaked.findings.records > 0
    assert soaked.lives > 1
    assert soaked.done["SIGKILLs of the daemon"] > 0
    assert soaked.done["SIGKILLs of the broker"] > 0
