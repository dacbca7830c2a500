"""Redaction: finds the secrets of a configuration, and replaces them in texts."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import quote, unquote

__all__ = ["Redactor", "is_secret", "secrets"]

_ENDINGS = ("password", "passphrase", "secret", "token")
_USER_INFO = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://[^/\s:@]*:(?P<password>[^/\s@]+)@")
_MASK = "**********"
# A shorter one is guessed sooner than found, and to look for it would garble every line and give it away.
_SHORTEST = 3


def is_secret(key: object) -> bool:
    """Return whether a key of the configuration holds a secret, by its name.

    Examples
    --------
    >>> is_secret("sasl_plain_password"), is_secret("seed")
    (True, False)

    """
    return isinstance(key, str) and key.lower().endswith(_ENDINGS)


def secrets(raw: Any, values: Any) -> dict[str, str]:
    """Return the secrets of a configuration: under the keys of passwords, and in the user part of URLs.

    Each comes with what is shown in its place: as it was written (`raw`) where that is a variable, else asterisks.

    Examples
    --------
    >>> secrets({"password": "${PW}", "seed": "${SEED}"}, {"password": "hunter2", "seed": "1"})
    {'hunter2': '${PW}'}

    """
    return {secret: written if "${" in written else _MASK for secret, written in _pairs(raw, values, False) if secret}


def _pairs(raw: Any, values: Any, secret: bool) -> Iterator[tuple[str, str]]:
    """Yield every secret with what the file says there."""
    if isinstance(values, dict):
        for key, value in values.items():
            yield from _pairs(raw.get(key) if isinstance(raw, dict) else None, value, secret or is_secret(key))
    elif isinstance(values, list):
        for index, value in enumerate(values):
            yield from _pairs(raw[index] if isinstance(raw, list) else None, value, secret)
    elif secret and values is not None and not isinstance(values, bool):
        yield str(values), str(raw)
    elif isinstance(values, str):
        written = _USER_INFO.search(raw) if isinstance(raw, str) else None
        for found in _USER_INFO.finditer(values):
            yield found["password"], written["password"] if written else ""


class Redactor:
    """Replaces secrets in a text; it is made of each secret with its replacement.

    Examples
    --------
    >>> Redactor({"hunter2": "${TOKEN}"})("cannot log in with hunter2")
    'cannot log in with ${TOKEN}'

    """

    def __init__(self, secrets: Mapping[str, str]) -> None:
        forms = {form: shown for secret, shown in secrets.items() for form in _forms(secret)}
        self._shown = {form: shown for form, shown in forms.items() if len(form) >= _SHORTEST}
        longest_first = sorted(self._shown, key=len, reverse=True)
        self._pattern = re.compile("|".join(map(re.escape, longest_first))) if longest_first else None

    def __call__(self, text: str) -> str:
        if self._pattern is None:
            return text
        return self._pattern.sub(lambda match: self._shown[match.group()], text)


def _forms(secret: str) -> set[str]:
    """Return the ways a library may write a secret: as it is, quoted, escaped, as bytes, or in a URL."""
    plain = {secret, unquote(secret)}
    encoded = {form for one in plain for form in (repr(one)[1:-1], json.dumps(one)[1:-1], quote(one, safe=""))}
    return plain | encoded | {repr(one.encode("utf-8", "surrogateescape"))[2:-1] for one in plain}
