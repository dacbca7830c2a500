"""What goes wrong, one kind a file."""

from tests.chaos.failure import FAILURES
from tests.chaos.failures import (
    beginnings,
    brokers,
    contents,
    fencing,
    groups,
    machine,
    members,
    network,
    outputs,
    process,
    topics,
    warm,
)

__all__ = [
    "ALL",
    "beginnings",
    "brokers",
    "contents",
    "fencing",
    "groups",
    "machine",
    "members",
    "network",
    "outputs",
    "process",
    "topics",
    "warm",
]

ALL = tuple(FAILURES)
"""Everything the harness knows to inject."""
