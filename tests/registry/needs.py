"""The libraries of the extra `registry`: tests that need one are skipped where it is missing, but not in CI."""

from __future__ import annotations

import importlib
import os
from typing import Any

import pytest


def needed(name: str) -> Any:
    """Import a library, or skip the tests of the module that asks for it."""
    if os.environ.get("CI"):
        return importlib.import_module(name)
    return pytest.importorskip(name, reason=f"{name} is not installed: pip install 'streamkernel[registry]'")
