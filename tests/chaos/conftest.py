"""A site for the trials: a broker of its own, because it is paused and killed."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from tests.chaos.site import Site
from tests.kafka.conftest import installed  # noqa: F401 - skips, or fails in CI, where there is no broker to be had


@pytest.fixture(scope="package")
def site(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """One for all trials of this process of pytest; it ends with the last, for its broker is never quite idle."""
    if os.environ.get("KAFKA_BOOTSTRAP"):
        pytest.skip("does things to a broker that only one of the tests' own may suffer: unset KAFKA_BOOTSTRAP")
    request.getfixturevalue("installed")
    with Site(tmp_path_factory.mktemp("chaos")) as made:
        yield made
