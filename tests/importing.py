"""What an import does when a library is missing, tried in a process that has imported all."""

import sys
from importlib import import_module

import pytest


def import_again(monkeypatch: pytest.MonkeyPatch, package: str) -> None:
    """Let a package be imported again, until the test ends."""
    parent, _, name = package.rpartition(".")
    # An import binds the new module in its parent: this puts the old one back.
    monkeypatch.setattr(import_module(parent), name, import_module(package))
    for module in [module for module in sys.modules if module.startswith(package)]:
        monkeypatch.delitem(sys.modules, module)
