"""What the search for garbage does not look through: all that is collected, and what a module's tests leave."""

import gc
from collections.abc import Generator

import pytest


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
