"""The client of systemd's notification protocol (sd_notify): one datagram to the socket that `NOTIFY_SOCKET` names."""

from __future__ import annotations

import logging
import os
import socket
from collections.abc import MutableMapping

__all__ = ["NotifySocket", "take_notify_socket"]

_log = logging.getLogger(__name__)

# The service manager reads its socket all the time: one that is not read is not waited for.
_SEND_SECONDS = 1.0
_LONGEST_STATUS = 300


class NotifySocket:
    """The notification socket of a service manager; a failure to send is logged once and otherwise ignored.

    Parameters
    ----------
    name
        A path, or ``@`` and a name in the abstract namespace.
    watchdog
        The seconds within which the service manager expects a message; None: at any time.

    """

    def __init__(self, name: str, watchdog: float | None = None) -> None:
        self._name = name
        self.watchdog = watchdog
        self._failed = False

    def send(self, **assignments: object) -> bool:
        """Send assignments such as ``READY=1`` as one datagram, and return whether that succeeded."""
        text = "\n".join(f"{key}={_line(str(value))}" for key, value in assignments.items())
        address = "\0" + self._name[1:] if self._name.startswith("@") else self._name
        try:
            with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender:
                sender.settimeout(_SEND_SECONDS)
                sender.sendto(text.encode("utf-8", "replace"), address)
        except (OSError, ValueError) as error:
            if not self._failed:
                self._failed = True
                _log.warning("the service manager cannot be notified: NOTIFY_SOCKET=%.120r: %s", self._name, error)
            return False
        return True


def take_notify_socket(environment: MutableMapping[str, str]) -> NotifySocket | None:
    """Return the notification socket that an environment names, None without one; no child process inherits it.

    Examples
    --------
    >>> environment = {"NOTIFY_SOCKET": "/run/systemd/notify", "WATCHDOG_USEC": "30000000"}
    >>> take_notify_socket(environment).watchdog, environment
    (30.0, {})

    """
    name, given, pid = (environment.pop(key, "") for key in ("NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID"))
    if not name:
        return None
    ours = given.isdecimal() and pid in ("", str(os.getpid()))
    return NotifySocket(name, int(given) / 1e6 if ours else None)


def _line(value: str) -> str:
    """Return a value without line ends, which would begin another assignment, and of limited length."""
    return "".join(character if character.isprintable() else " " for character in value)[:_LONGEST_STATUS]
