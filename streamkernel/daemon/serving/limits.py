"""What a client of the HTTP server may take: connections, time and memory."""

from __future__ import annotations

import logging
import resource
from dataclasses import dataclass

__all__ = ["HttpLimits", "affordable_connections"]

_log = logging.getLogger(__name__)

# For checkpoints, sources, sinks, brokers and the libraries.
_OTHER_DESCRIPTORS = 256
_FEWEST = 4


@dataclass(frozen=True)
class HttpLimits:
    """The limits of an HTTP server."""

    connections: int = 64  # open at once, also before their TLS handshake; those beyond it are refused
    # For a TLS handshake, for a whole request from its first byte or the response before, and of an idle connection.
    receive_seconds: float = 5.0
    answer_seconds: float = 30.0  # for a request to be answered, and its answer to be taken
    # How long a client may go on sending after its request was refused, so that it reads why.
    linger_seconds: float = 1.0
    stop_seconds: float = 1.0  # how long a server that stops waits for answers in the works
    header_bytes: int = 16_384  # the longest request line and header fields together
    header_fields: int = 100  # how many of them
    body_bytes: int = 1_048_576  # the longest body
    pipelined: int = 16  # requests of one connection that wait for the one before them
    workers: int = 4  # requests answered at once by threads, metrics and probes apart


def affordable_connections(wanted: int, what: str = "the metrics") -> int:
    """Return how many of these connections the limit of open files allows, after raising it if it has to be."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    needed = wanted + _OTHER_DESCRIPTORS
    if soft == resource.RLIM_INFINITY or soft >= needed:
        return wanted
    # No further than needed: select() in some library may not bear descriptors of 1,024 and above.
    raised = needed if hard == resource.RLIM_INFINITY else min(hard, needed)
    resource.setrlimit(resource.RLIMIT_NOFILE, (raised, hard))
    if raised >= needed:
        return wanted
    # The daemon comes first: a scrape that is refused harms less than a checkpoint that cannot be opened.
    allowed = min(wanted, max(_FEWEST, raised - _OTHER_DESCRIPTORS))
    _log.warning(
        "at most %d connections to %s are accepted, not %d: the limit of open files is %d (ulimit -n)",
        *(allowed, what, wanted, raised),
    )
    return allowed
