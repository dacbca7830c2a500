"""Text from records and checkpoints, fit for a terminal and a log.

A name of an input or a label may hold anything: escape sequences that rewrite a terminal, line ends that forge a line
of the log, marks that turn the direction of what follows, halves of characters that cannot be printed at all.
"""

from __future__ import annotations

import re

__all__ = ["visible"]

# C0 and C1 controls, DEL, separators of lines and paragraphs, everything that sets a direction or does not show
# (soft hyphen, zero width, joiners, tags, annotations), and surrogates.
_HIDDEN = re.compile(
    "[\x00-\x1f\x7f-\x9f\xad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\U000e0000-\U000e007f"
    "\ud800-\udfff]"
)
_HIDDEN_BUT_LINES = re.compile(_HIDDEN.pattern.replace("\x00-\x1f", "\x00-\x08\x0b-\x1f"))


def visible(text: str, lines: bool = False) -> str:
    r"""Write what does not show, or would steer a terminal, as Python writes it in a string; or all but ends of lines.

    Examples
    --------
    >>> visible("a\x1b[2Jb\n"), visible("\u202egpj.exe")
    ('a\\x1b[2Jb\\n', '\\u202egpj.exe')
    >>> visible("zwölf\n", lines=True)
    'zwölf\n'

    """
    return (_HIDDEN_BUT_LINES if lines else _HIDDEN).sub(lambda found: ascii(found[0])[1:-1], text)
