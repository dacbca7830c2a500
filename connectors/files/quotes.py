"""Whether a quoted field of CSV is open at the end of a line."""

from __future__ import annotations

__all__ = ["Quotes"]


class Quotes:
    """The quotes of one record of CSV, line by line, by the rules that the csv module has when it is strict.

    Attributes
    ----------
    open
        Whether a quoted field goes on in the next line.
    broken
        Whether the lines are no CSV: something follows a closing quote, or a carriage return stands outside of quotes.

    Examples
    --------
    >>> quotes = Quotes(",")
    >>> for line in ('1,"a', '2,3', 'b",4'):
    ...     quotes.feed(line)
    ...     print(quotes.open)
    True
    True
    False

    """

    def __init__(self, delimiter: str) -> None:
        self._delimiter = delimiter
        self.open = self.broken = False

    def feed(self, line: str) -> None:
        """Take the next line, without its end."""
        at = 0
        while not self.broken:
            if self.open:
                end = line.find('"', at) + 1
                if not end:
                    return
                if line.startswith('"', end):  # a doubled one stands for itself
                    at = end + 1
                    continue
                self.open, at = False, end
            elif line.startswith('"', at):
                self.open = True
                at += 1
                continue
            else:
                end = line.find(self._delimiter, at)
            if end < 0 or not line.startswith(self._delimiter, end):
                # To the csv module carriage returns at the end of a line belong to the line end.
                rest = line[at:].rstrip("\r")
                self.broken = bool(rest) if end >= 0 else "\r" in rest
                return
            self.broken = "\r" in line[at:end]
            at = end + 1

    def skip(self, n_quotes: int) -> None:
        """Take the rest of a line of which only the number of its quotes is known."""
        if n_quotes % 2:
            self.open = not self.open
