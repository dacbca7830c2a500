"""`--version`, and what a shell is told when it asks for completions."""

from __future__ import annotations

import subprocess
from importlib.metadata import version

import pytest

from tests.daemon.conftest import Home, Launcher


def test_the_version(home: Home, launcher: Launcher) -> None:
    ended = launcher.call(home, "--version")
    assert (ended.returncode, ended.stdout) == (0, f"streamkernel {version('streamkernel')}\n")


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_each_shell_has_a_script(home: Home, launcher: Launcher, shell: str) -> None:
    ended = launcher.call(home, "completion", shell)
    assert ended.returncode == 0
    assert f"_STREAMKERNEL_COMPLETE=complete_{shell}" in ended.stdout
    assert "streamkernel" in ended.stdout
    if shell == "bash":
        subprocess.run(["bash", "-n", "-c", ended.stdout], check=True)


def test_a_shell_that_is_not_known(home: Home, launcher: Launcher) -> None:
    ended = launcher.call(home, "completion", "tcsh")
    assert ended.returncode == 2
    assert "zsh" in ended.stderr


@pytest.mark.parametrize(
    ("words", "number", "found"),
    [
        ("streamkernel ev", "1", {"evaluate"}),
        ("streamkernel run --fr", "2", {"--fresh"}),
        ("streamkernel run --se", "2", {"--set"}),
        ("streamkernel completion z", "2", {"zsh"}),
    ],
)
def test_commands_and_options_are_completed(
    home: Home, launcher: Launcher, words: str, number: str, found: set[str]
) -> None:
    asked = {"COMP_WORDS": words, "COMP_CWORD": number, "_STREAMKERNEL_COMPLETE": "complete_bash"}
    ended = launcher.call(home, **asked)
    assert ended.returncode == 0
    assert set(ended.stdout.split()) == found
