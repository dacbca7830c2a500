"""A package that the user trusts adds its classes and functions, and nothing that it imports."""

import importlib
import pickle
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.daemon.pickles import build, call, load, name, program, refused, value

TRUSTED = """
import os
from posix import system
from river import base

class Half(base.Transformer):
    class Inner: pass
    def __init__(self, by=2): self.by = by
    def transform_one(self, x): return {k: v / self.by for k, v in x.items()}
    def bound(self): return self.by

class Pair(tuple):
    def __new__(cls, *, a, b): return super().__new__(cls, (a, b))
    def __getnewargs_ex__(self): return (), {"a": self[0], "b": self[1]}

class Counted:
    def __init__(self, n): self.n = n
    def __getstate__(self): return {"n": self.n}
    def __setstate__(self, state): self.n = state["n"] + 1

class Made:
    def __init__(self, n): self.n = n
    def __reduce__(self): return Made, (self.n,)

def double(x): return 2 * x
"""


@pytest.fixture
def trusted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "__init__.py").touch()
    (tmp_path / "mine" / "models.py").write_text(TRUSTED)
    monkeypatch.syspath_prepend(tmp_path)
    yield importlib.import_module("mine.models")
    del sys.modules["mine"], sys.modules["mine.models"]


def test_a_trusted_package_adds_its_classes_and_functions(trusted: Any) -> None:
    made = [trusted.Half(4), trusted.Pair(a=1, b=2), trusted.Counted(1), trusted.Made(5)]
    data = pickle.dumps([*made, trusted.double, trusted.Half(3).bound], 5)
    refused(data, "names mine.models.Half")
    refused(data, "names mine.models.Half", ("min", "mine.models.Half", "other"))
    for packages in (("mine",), ("mine.models",)):
        half, pair, counted, five, double, bound = load(data, packages)
        assert half.transform_one({"a": 8}) == {"a": 2}
        assert (pair, counted.n, five.n, double(2), bound()) == ((1, 2), 2, 5, 4, 3)


@pytest.mark.usefixtures("trusted")
def test_what_a_trusted_package_imports_is_not_trusted() -> None:
    packages = ("mine", "river", "streamkernel")
    refused(program(name("mine.models", "system")), "no class or function of that module", packages)
    refused(program(name("mine.models", "os")), "no class or function of that module", packages)
    refused(program(name("mine.models", "nothing")), "no class or function of that module", packages)
    refused(program(name("mine.models", "os.system")), "names mine.models.os.system", packages)
    refused(program(name("mine.models", "Half.Inner")), "names mine.models.Half.Inner", packages)
    refused(program(name("minefield", "Half")), "names minefield.Half", packages)
    refused(program(call(name("mine.models", "double"), value(1))), "calls mine.models.double", packages)
    refused(program(build(name("mine.models", "Half"), value((None, {"by": 1})))), "sets attributes", packages)
    refused(program(name("river.datasets.bananas", "Bananas")), "names river.datasets", packages)
    refused(program(name("streamkernel.daemon.base.crash", "point")), "names streamkernel.daemon", packages)
