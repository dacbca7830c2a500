"""What goes wrong, one kind a file."""

from tests.chaos.failure import FAILURES
from tests.chaos.failures import beginnings, brokers, contents, groups, machine, outputs, process, topics

__all__ = ["ALL", "beginnings", "brokers", "contents", "groups", "machine", "outputs", "process", "topics"]

ALL = tuple(FAILURES)
"""Everything the harness knows to inject."""
