"""Where trials take place: one broker with a network before it, one process that starts daemons, one folder."""

from __future__ import annotations

import contextlib
import itertools
from pathlib import Path
from typing import Self

from tests.chaos.daemons import Starter
from tests.chaos.proxy import Proxy
from tests.chaos.reference import References
from tests.kafka.broker import Broker
from tests.kafka.listeners import address

# A week by default: a transactional id that is quiet for longer gets a new producer.
_FORGETFUL = {
    "transactional_id_expiration_ms": 3000,
    "transaction_remove_expired_transaction_cleanup_interval_ms": 500,
}


class Site:
    """A broker of its own, to be paused and killed, and everything a trial needs besides.

    A context manager; it leaves no process and no file of the broker behind."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._numbers = itertools.count(1)
        self._stack = contextlib.ExitStack()

    def __enter__(self) -> Self:
        with contextlib.ExitStack() as stack:
            self.starter = stack.enter_context(Starter(self.folder / "logs"))
            self.network = stack.enter_context(Proxy())
            self.broker = stack.enter_context(
                Broker(self.folder / "broker", detour=self.network.port, **_FORGETFUL),
            )
            self.network.target = self.broker.behind
            self.references = References(self.starter, self.folder / "undisturbed")
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    @property
    def by_network(self) -> str:
        """The address of the broker for who is to suffer from the network."""
        return address(self.network.port)

    def number(self) -> int:
        """Give the next number, for names."""
        return next(self._numbers)

    def mend(self) -> None:
        """Let the network and the broker be well again."""
        self.network.flow()
        self.broker.resume()
        if not self.broker.alive:
            self.broker.start()
