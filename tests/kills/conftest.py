"""The launcher, for kills that are real."""

from tests.daemon.conftest import launcher

__all__ = ["launcher"]
