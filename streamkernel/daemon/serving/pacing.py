"""The selector of a server beside a thread that learns: in a flood it looks at its sockets so often, and no oftener."""

from __future__ import annotations

import selectors
import time

__all__ = ["PacedSelector"]

# Each look takes the interpreter from the thread that learns. A few answers in a row are not held up.
_LOOKS_IN_A_ROW = 32
_LOOKS_PER_SECOND = 100.0


class PacedSelector(selectors.DefaultSelector):
    """Selector that waits before it looks again where it has looked often: what came meanwhile is found at once.

    Examples
    --------
    >>> with PacedSelector() as selector:
    ...     start = time.monotonic()
    ...     for _ in range(36):
    ...         found = selector.select(0.0001)
    ...     time.monotonic() - start > 0.02
    True

    """

    def __init__(self) -> None:
        super().__init__()
        self._left = float(_LOOKS_IN_A_ROW)
        self._looked = time.monotonic()

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        """Wait for events; see `selectors.BaseSelector.select`."""
        if timeout is None or timeout > 0:  # else it is a look in passing, between things that are to be done
            now = time.monotonic()
            self._left = min(_LOOKS_IN_A_ROW, self._left + (now - self._looked) * _LOOKS_PER_SECOND) - 1
            self._looked = now
            if self._left < 0:
                time.sleep(-self._left / _LOOKS_PER_SECOND)
        return super().select(timeout)
