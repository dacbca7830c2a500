"""What to do about dead letters, by their reason."""

from __future__ import annotations

__all__ = ["explained", "remedy"]

_NOT_UTF_8 = "convert what comes to UTF-8, such as by iconv -f latin1 -t utf-8"
_REMEDIES = {
    "not_json": "write one JSON object a line; {section}.kind: csv reads CSV",
    "not_an_object": "write each record as a JSON object, names and values",
    "csv_width": "set {section}.delimiter to what separates the fields, and {section}.multiline: true where a quoted "
    "field holds line ends",
    "open_quote": "set {section}.multiline: true, if a quoted field holds line ends; else mend the quote",
    "too_long": "raise limits.max_record_bytes",
    "target": "set {section}.target_type to what {section}.target holds",
    "infinite": "leave the value out, or the cell empty, where there is none",
    "nested": "set {section}.inputs.nested: flatten, which makes an input of each value in it, or ignore",
    "input_type": "set the format, na or invalid: missing under {section}.inputs.types to what the column holds",
    "string_too_long": "raise limits.max_string",
    "corrupt": "look at who writes to the topic: these bytes cannot be decompressed or read",
    "schema": "look at who writes to the topic: its values do not go with {section}.value_format, or with their schema",
    "key": "write the field that labels.key names with each label",
    "kills_process": "a library of the model ends the process over these records: report it to its authors",
}


def remedy(reason: str, section: str, kind: str, detail: str = "") -> str:
    """Return what to do about dead letters of a reason.

    Parameters
    ----------
    reason
        The reason, as `streamkernel.daemon.base.dead_letters` lists them.
    section, kind
        The section of their source in the configuration, and its kind.
    detail
        Why the first of them cannot be used.

    Examples
    --------
    >>> remedy("encoding", "source", "csv")
    'set source.encoding to that of the file, such as cp1252'

    """
    if reason == "encoding":
        return f"set {section}.encoding to that of the file, such as cp1252" if kind == "csv" else _NOT_UTF_8
    if reason == "csv_width" and "quotes" in detail:
        return "close the quote that stands in that line, or double it where it is part of the text"
    if reason == "nested" and "same" in detail:
        return "rename one of them where the records are made"
    if reason == "corrupt" and kind not in ("kafka", ""):
        return "look at that file: it cannot be read, why stands in the log"
    if reason == "refused" and detail:
        # Said by Python itself: a text for a step that reckons, say.
        mute = detail.startswith("TypeError") and kind != "river"
        return detail + (f": {section}.inputs.exclude leaves out columns that a step cannot use" if mute else "")
    return _REMEDIES.get(reason, "the dead letters say why").format(section=section)


def explained(reason: str, section: str, kind: str, detail: str) -> str:
    """Return why the first of some dead letters cannot be used, and what to do about it.

    Examples
    --------
    >>> explained("refused", "source", "csv", "TypeError: a text")
    'TypeError: a text: source.inputs.exclude leaves out columns that a step cannot use'

    """
    advice = remedy(reason, section, kind, detail)
    return advice if advice.startswith(detail) else f"{detail}: {advice}"
