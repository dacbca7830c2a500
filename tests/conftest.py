"""Hypothesis draws few examples, the same in every run of one code, and ten times as many new ones each night.

Nothing depends on the clock, because the first call of a kernel compiles it. Hypothesis takes constants from our own
files too: a change of any of them may change the examples of any test.
"""

import gc
import os
from collections.abc import Generator

import pytest
from hypothesis import HealthCheck, settings

_CALM = [HealthCheck.too_slow, HealthCheck.function_scoped_fixture]
settings.register_profile(
    "suite", deadline=None, derandomize=True, max_examples=40, print_blob=True, suppress_health_check=_CALM
)
settings.register_profile("nightly", settings.get_profile("suite"), derandomize=False, max_examples=400)
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
        _keep()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> Generator[None, None, None]:
    """Keep from it, too, what a module's tests leave for good: imports, and all that numba holds of compiled code."""
    yield
    if nextitem is not None and nextitem.parent is not item.parent and gc.get_count()[2] > 0:
        _keep()


def _keep() -> None:
    gc.collect()
    gc.freeze()
