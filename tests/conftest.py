"""Hypothesis without deadlines (the first call of a kernel compiles it), the same examples in every run of one code.

Hypothesis takes constants from our own files too: a change of any of them may change the examples of any test.
"""

import gc
import os
from collections.abc import Generator

import pytest
from hypothesis import settings

settings.register_profile("suite", deadline=None, derandomize=True, print_blob=True)
settings.load_profile("suite")


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int:
    """Take one more than there are processors: tests of daemons and brokers wait more than they work."""
    return (os.cpu_count() or 1) + 1


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Keep the ten thousand tests from what searches for garbage look through: River's checks ask for many of them."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()
        gc.collect()
        gc.freeze()
