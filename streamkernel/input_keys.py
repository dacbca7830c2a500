"""The keys of inputs, of which their random features follow."""

import hashlib
import json
from typing import Any

__all__ = ["key_of"]

_quoted = json.encoder.encode_basestring


def key_of(tagged: list[Any]) -> int:
    """The 64-bit key of a column, the same for ever: a BLAKE2b hash of its name with type and an indicator's value."""
    kind, name, *value = tagged
    if name[0] == "str":  # as JSON has it, without the encoder that each call of `dumps` makes
        rest = f",{_quoted(value[0])}]" if value else "]"
        text = f'["{kind}",["str",{_quoted(name[1])}]{rest}'
    else:
        text = json.dumps(tagged, separators=(",", ":"), ensure_ascii=False)
    return int.from_bytes(hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "little")
