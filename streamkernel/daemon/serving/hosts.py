"""Which names the HTTP server answers to: a page of another site must not read it under a name of its own.

A browser lets a page read what its own host serves, and whoever owns a name may let it point anywhere, also to a
server on the reader's machine (DNS rebinding). Such a request carries the foreign name in its Host header.
"""

from __future__ import annotations

import ipaddress
import re
import socket
from collections.abc import Iterable

__all__ = ["HostError", "Hosts"]

_HOST = re.compile(rb"(?:\[(?P<six>[0-9a-f:.]+)\]|(?P<name>[a-z0-9_.-]+))(?::[0-9]{0,5})?", re.IGNORECASE)


class HostError(Exception):
    """The Host header is missing or malformed; the message says how."""


class Hosts:
    """The hosts a server answers to: any address, loopback names, this machine's name, and those that are listed.

    An address in the header is no danger: no name was asked for, so none can have been pointed here.

    Parameters
    ----------
    listed
        Further names; ``*.example.org`` stands for all names that end so, ``*`` for all.

    Examples
    --------
    >>> hosts = Hosts(["metrics.example.org", "*.local"])
    >>> [hosts.allows(name) for name in ("localhost", "10.1.2.3", "::1", "metrics.example.org", "a.local", "evil.org")]
    [True, True, True, True, True, False]

    """

    def __init__(self, listed: Iterable[str]) -> None:
        names = {name.lower().rstrip(".") for name in (*listed, socket.gethostname())}
        self._all = "*" in names
        self._names = frozenset(names | {"localhost"})
        self._endings = (".localhost", *(name[1:] for name in names if name.startswith("*.")))

    @staticmethod
    def named(headers: Iterable[tuple[bytes, bytes]], version: str) -> str | None:
        """Read which host a request asks for; None where HTTP/1.0 names none.

        Raises
        ------
        HostError
            Where it is not named once and well.

        """
        values = [value for name, value in headers if name == b"host"]
        if not values and version == "1.0":
            return None
        if len(values) != 1:
            raise HostError("a request needs one Host header" + (", this one has several" if values else ""))
        found = _HOST.fullmatch(values[0])
        if found is None:
            raise HostError("the Host header names no host")
        return (found["six"] or found["name"]).decode().lower().rstrip(".")

    def allows(self, host: str) -> bool:
        """Return whether a request for a host is answered."""
        return self._all or host in self._names or host.endswith(self._endings) or _is_address(host)


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True
