"""Programs and files for the tests of the mixin."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.daemon.conftest import home, homes, launcher, program

__all__ = ["home", "homes", "launcher"]

MIXIN = Path(__file__).parents[2] / "configs" / "mixin"


@pytest.fixture(scope="session")
def promtool() -> str:
    """What checks and tries rules."""
    return program("promtool")


@pytest.fixture(scope="session")
def jsonnet() -> str:
    """What evaluates the mixin."""
    return program("jsonnet", package="jsonnet")
