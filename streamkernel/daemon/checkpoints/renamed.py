"""The one table of keys of earlier formats and their names now."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

__all__ = ["HEADER_KEYS", "PAYLOAD_KINDS", "renamed"]

HEADER_KEYS: Mapping[str, str] = {
    "outputs.*.mark.earlier": "existing",
    "outputs.*.mark.emitted": "written",
}
"""By the path of a key in a header of format 1 or 2, such as ``labels.account`` or ``outputs.*.mark``, its key now."""

PAYLOAD_KINDS: Mapping[str, str] = {"record": "state"}
"""By what formats 1 and 2 call what a payload holds, what it is called now."""


def renamed(header: Mapping[str, Any], keys: Mapping[str, str] = HEADER_KEYS) -> dict[str, Any]:
    """Return a header of any format under the keys of now; what has an unknown key stays as it is.

    Parameters
    ----------
    header
        As a file has it.
    keys
        By the path of an old key, the new one; ``*`` in a path stands for any key.

    Examples
    --------
    >>> renamed({"account": {"dead": 1}, "outputs": {"a": {"at": 3}}}, {"account": "counts", "outputs.*.at": "mark"})
    {'counts': {'dead': 1}, 'outputs': {'a': {'mark': 3}}}

    """
    found = {}
    for key, value in header.items():
        parted = ((old.partition("."), new) for old, new in keys.items())
        below = {rest: new for (first, _, rest), new in parted if rest and first in (key, "*")}
        found[keys.get(key, key)] = renamed(value, below) if below and isinstance(value, dict) else value
    return found
