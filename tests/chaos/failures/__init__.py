"""What goes wrong, one kind a file."""

from tests.chaos.failure import FAILURES
from tests.chaos.failures import brokers, fencing, groups, machine, network, outputs, process, topics

__all__ = ["ALL", "brokers", "fencing", "groups", "machine", "network", "outputs", "process", "topics"]

ALL = tuple(FAILURES)
"""Everything the harness knows to inject."""
