"""What holds for every test and doctest: which are collected, what is drawn, where they may write, a log reset."""

from __future__ import annotations

import importlib.util
import logging
import os
import sys
import tempfile
import warnings
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

pytest_plugins = ["tests.rings"]

# Nothing that is drawn depends on the clock, because the first call of a kernel compiles it. Hypothesis takes constants
# from our own files too: a change of any of them may change the examples of any test.
_CALM = [HealthCheck.too_slow, HealthCheck.function_scoped_fixture]
settings.register_profile(
    "suite", deadline=None, derandomize=True, max_examples=20, print_blob=True, suppress_health_check=_CALM
)
settings.register_profile("seeded", settings.get_profile("suite"), derandomize=False, database=None)
settings.register_profile("nightly", settings.get_profile("suite"), derandomize=False, max_examples=400)
settings.load_profile("suite")

# The examples of Spark's modules are tried only where Spark is installed.
collect_ignore = [] if importlib.util.find_spec("pyspark") else ["streamkernel/spark"]

_ROOT = Path(__file__).parent
# What tools write beside the code. None of it changes what a test sees.
_CACHES = {".git", ".hypothesis", ".mypy_cache", ".pytest_cache", ".ruff_cache", ".venv", "__pycache__"}

_written: list[str] = []


def _watch(event: str, arguments: tuple[object, ...]) -> None:
    """Note each path of the checkout that this process opens for writing, makes, moves or removes."""
    if event == "open":
        path, mode, flags = arguments
        writes = any(c in mode for c in "wax+") if isinstance(mode, str) else bool(int(str(flags)) & 0b11)
        touched = [path] if writes else []
    elif event == "os.rename":
        touched = [*arguments[:2]]
    elif event in ("os.link", "os.symlink"):
        touched = [arguments[1]]
    elif event in ("os.mkdir", "os.remove", "os.rmdir", "os.truncate"):
        touched = [arguments[0]]
    else:
        return
    for each in touched:
        if isinstance(each, bytes | str | os.PathLike):
            path = os.path.realpath(os.fsdecode(each))
            if path.startswith(f"{_ROOT}{os.sep}") and not _CACHES & set(Path(path).relative_to(_ROOT).parts):
                _written.append(path)


sys.addaudithook(_watch)


@pytest.fixture(scope="session")
def _empty(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("nobody-writes-here")


@pytest.fixture(autouse=True)
def working_directory(_empty: Path) -> Iterator[None]:
    """Run each test in an empty folder outside the checkout. A test that writes there or into the checkout fails."""
    os.chdir(_empty)
    _written.clear()
    yield
    os.chdir(_empty)
    touched = [*_written, *(str(_empty / name) for name in os.listdir(_empty))]
    for name in os.listdir(_empty):
        (_empty / name).rename(Path(tempfile.mkdtemp(dir=_empty.parent)) / name)
    if touched:
        pytest.fail(f"wrote outside of its own folder (take tmp_path): {sorted(set(touched))}", pytrace=False)


_ROOT_LOG, _KAFKA_LOG = logging.getLogger(), logging.getLogger("kafka")
_LOG_AT_FIRST = _ROOT_LOG.level, _KAFKA_LOG.level, warnings.formatwarning


@pytest.fixture(autouse=True)
def reset_log() -> Iterator[None]:
    """Reset the log before and after each test: a daemon in this process sets its handlers, levels and warnings."""
    _reset_log()
    yield
    _reset_log()


def _reset_log() -> None:
    logging.captureWarnings(False)
    _ROOT_LOG.handlers[:] = [one for one in _ROOT_LOG.handlers if type(one).__module__.startswith("_pytest.")]
    root, kafka, warnings.formatwarning = _LOG_AT_FIRST
    _ROOT_LOG.setLevel(root)
    _KAFKA_LOG.setLevel(kafka)
