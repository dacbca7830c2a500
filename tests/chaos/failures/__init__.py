"""What goes wrong, one kind a file."""

from tests.chaos.failure import FAILURES
from tests.chaos.failures import brokers, fencing, groups, machine, network, process, topics

__all__ = ["ALL", "brokers", "fencing", "groups", "machine", "network", "process", "topics"]

ALL = tuple(FAILURES)
"""Everything the harness knows to inject."""
