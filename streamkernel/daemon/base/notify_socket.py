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
_MOST_DIGITS = 20  # of a number in 64 bits, which is what systemd has
# What the service manager told about the service is for this process alone.
_SOCKET, _WATCHDOG = "NOTIFY_SOCKET", ("WATCHDOG_USEC", "WATCHDOG_PID")


class NotifySocket:
    """The notification socket of a service manager; a failure to send is logged once and otherwise ignored.

    Parameters
    ----------
    name
        A path, or ``@`` and a name in the abstract namespace.
    watchdog
        Within how many seconds the service manager wants to hear from us; None: at any time.

    """

    def __init__(self, name: str, watchdog: float | None = None) -> None:
        self._address = "\0" + name[1:] if name.startswith("@") else name
        self._name = name
        self.watchdog = watchdog
        self._failed = False

    def send(self, **assignments: object) -> bool:
        """Send assignments such as ``READY=1`` as one datagram, and return whether that succeeded."""
        text = "\n".join(f"{key}={_line(str(value))}" for key, value in assignments.items())
        try:
            with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender:
                sender.settimeout(_SEND_SECONDS)
                sender.sendto(text.encode("utf-8", "replace"), self._address)
        except (OSError, ValueError) as error:
            if not self._failed:
                self._failed = True
                _log.warning("the service manager cannot be notified: NOTIFY_SOCKET=%.120r: %s", self._name, error)
            return False
        return True


def take_notify_socket(environment: MutableMapping[str, str]) -> NotifySocket | None:
    """Return the notification socket that an environment names, and remove it there, so that no child process has it.

    Without one, or with one of a kind that is not spoken here, None is returned.

    Examples
    --------
    >>> environment = {"NOTIFY_SOCKET": "/run/systemd/notify", "WATCHDOG_USEC": "30000000"}
    >>> take_notify_socket(environment).watchdog, environment
    (30.0, {})
    >>> take_notify_socket({})

    """
    name = environment.pop(_SOCKET, "")
    given, pid = (environment.pop(key, "") for key in _WATCHDOG)
    if not name:
        return None
    if name[0] not in "/@":
        _log.warning(
            "the service manager cannot be notified: NOTIFY_SOCKET=%.120r is neither a path nor starts with @", name
        )
        return None
    return NotifySocket(name, _watchdog_seconds(given, pid))


def _watchdog_seconds(given: str, pid: str) -> float | None:
    """Return the interval of the watchdog; None without one, and where it is for another process."""
    if not given or (pid and pid != str(os.getpid())):
        return None
    microseconds = int(given) if given.isascii() and given.isdigit() and len(given) <= _MOST_DIGITS else 0
    if microseconds == 0:
        _log.warning("no watchdog: WATCHDOG_USEC=%.100r is not a positive number of microseconds", given)
        return None
    return microseconds / 1e6


def _line(value: str) -> str:
    """Return a value without line ends, which would begin another assignment, and of limited length."""
    return "".join(character if character.isprintable() else " " for character in value)[:_LONGEST_STATUS]
