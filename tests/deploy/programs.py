"""Debian's programs that look at the files for deployment, and where these files are."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

__all__ = ["CONFIGS", "ROOT", "checked", "needed_program"]

ROOT = Path(__file__).parents[2]
CONFIGS = ROOT / "configs"


def needed_program(name: str, package: str) -> str:
    """Find a program of a package of Debian's; without it a test is skipped, but for CI, where it fails."""
    found = shutil.which(name)
    if found is not None:
        return found
    missing = f"{name} is not installed (Debian: {package})"
    if os.environ.get("CI"):
        pytest.fail(missing, pytrace=False)
    pytest.skip(missing)


def checked(*command: str, **environment: str) -> str:
    """Run a program that is to find nothing wrong, and return its output."""
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, env={**os.environ, **environment})
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr
