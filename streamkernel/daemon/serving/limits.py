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
    """The limits of an HTTP server.

    Attributes
    ----------
    connections
        Open at once, also before their TLS handshake; those beyond it are refused.
    receive_seconds
        Within these a TLS handshake is done, and within these a request is there as a whole, counted from the accept
        or from the response before it; also how long an idle connection is kept.
    answer_seconds
        Within these a request is answered and its answer is taken.
    linger_seconds
        How long a client may go on sending after its request was refused, so that it reads why.
    stop_seconds
        How long a server that stops waits for answers in the works.
    header_bytes, header_fields
        The longest request line and header fields together, and how many fields.
    body_bytes
        The longest body.
    pipelined
        Requests of one connection that wait for the one before them.
    workers
        Requests answered at once by threads, metrics and probes apart.

    """

    connections: int = 64
    receive_seconds: float = 5.0
    answer_seconds: float = 30.0
    linger_seconds: float = 1.0
    stop_seconds: float = 1.0
    header_bytes: int = 16_384
    header_fields: int = 100
    body_bytes: int = 1_048_576
    pipelined: int = 16
    workers: int = 4


def affordable_connections(wanted: int) -> int:
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
        "at most %d connections to the metrics are taken, not %d: the limit of open files is %d (ulimit -n)",
        *(allowed, wanted, raised),
    )
    return allowed
