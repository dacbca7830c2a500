"""Texts that UTF-8 does not have, as no file, log line or answer can hold them."""

from __future__ import annotations

import re

from streamkernel.daemon.config.problems import ConfigError

__all__ = ["require_text", "why_no_text"]

_SURROGATE = re.compile("[\ud800-\udfff]")
# What Python reads for the bytes of arguments, variables and names of files that are not UTF-8.
_BYTES = range(0xDC80, 0xDD00)


def why_no_text(text: str) -> str | None:
    r"""Return why UTF-8 has no such text, and what to do; None where it has.

    Examples
    --------
    >>> why_no_text("zwölf")
    >>> why_no_text("caf\udce9")
    'the byte 0xe9 is not UTF-8: write the text in UTF-8, and rename a file with such a name or use a pattern'
    >>> print(why_no_text("\ud83d"))
    \ud83d is half of a character: write the whole one, as it is or as \U with eight digits

    """
    found = _SURROGATE.search(text)
    if found is None:
        return None
    code = ord(found[0])
    if code in _BYTES:
        return (
            f"the byte {code - 0xDC00:#04x} is not UTF-8: write the text in UTF-8, and rename a file with such a "
            "name or use a pattern"
        )
    return f"\\u{code:04x} is half of a character: write the whole one, as it is or as \\U with eight digits"


def require_text(key: str, text: str) -> None:
    """Refuse the text of a key or an option where UTF-8 does not have it.

    Raises
    ------
    ConfigError
        Where it does not.

    """
    why = why_no_text(text)
    if why is not None:
        raise ConfigError([f"{key}: {why}"])
