"""Somebody at a shell: the commands are processes of their own, in a folder with that person's data."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.daemon.conftest import Home, Launcher, Running, launcher

__all__ = ["launcher"]


class Person:
    """Types commands, and reads what they print and what they leave."""

    def __init__(self, launcher: Launcher, folder: Path) -> None:
        self.folder = folder
        self._launcher = launcher
        self._home = Home(folder)

    def types(self, words: Sequence[str], **environment: str) -> subprocess.CompletedProcess[str]:
        """Run a command line to its end, with `> FILE` as a shell does it."""
        words, file = (words[:-2], words[-1]) if len(words) > 2 and words[-2] == ">" else (words, None)
        done = self._launcher.call(self._home, *words, **environment)
        if file is not None:
            (self.folder / file).write_text(done.stdout)
        return done

    def starts(self, *words: str, **environment: str) -> Running:
        """Start a command that goes on until it is stopped."""
        return self._launcher.start(self._home, *words, **environment)

    def writes(self, name: str, settings: dict[str, Any] | str) -> None:
        text = settings if isinstance(settings, str) else yaml.safe_dump(settings, sort_keys=False)
        (self.folder / name).write_text(text)

    def lines(self, name: str) -> list[dict[str, Any]]:
        return [json.loads(line) for line in (self.folder / name).read_text().splitlines()]

    def inspects(self, directory: str) -> dict[str, Any]:
        """Read a checkpoint by the command for it."""
        done = self.types(["inspect", directory, "--json"])
        assert done.returncode == 0, done.stderr
        return dict(json.loads(done.stdout))


@pytest.fixture
def person(launcher: Launcher, tmp_path: Path) -> Person:
    """A person in an empty folder."""
    return Person(launcher, tmp_path)
