"""What to do about dead letters, by their reason."""

from __future__ import annotations

__all__ = ["explained", "remedy"]

_NOT_UTF_8 = "convert the text to UTF-8, for example with iconv -f latin1 -t utf-8"
_REMEDIES = {
    "not_json": "write one JSON object a line; {section}.kind: csv reads CSV",
    "not_an_object": "write each record as a JSON object, names and values",
    "csv_width": "set {section}.delimiter to the field separator, and {section}.multiline: true if quoted fields "
    "contain line ends",
    "open_quote": "set {section}.multiline: true if quoted fields contain line ends, or fix the quote",
    "too_long": "raise limits.max_record_bytes",
    "target": "set {section}.target_type to the type of {section}.target",
    "infinite": "leave out the value, or leave the cell empty",
    "nested": "set {section}.inputs.nested: flatten to make each inner value an input, or ignore",
    "input_type": "set format or decimal, na or 'invalid: missing' under {section}.inputs.types to match the column",
    "string_too_long": "raise limits.max_string",
    "corrupt": "check what writes to the topic: these bytes cannot be decompressed or read",
    "schema": "check what writes to the topic: its values do not match {section}.value_format, or their schema",
    "key": "write the field named by labels.key with each label",
    "kills_process": "a library of the model crashes on these records: report that to its authors",
}


def remedy(reason: str, section: str, kind: str, detail: str = "") -> str:
    """Return what to do about dead letters of a reason; nothing if their detail says it.

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
    'set source.encoding to the encoding of the file, such as cp1252'

    """
    if reason == "encoding":
        return f"set {section}.encoding to the encoding of the file, such as cp1252" if kind == "csv" else _NOT_UTF_8
    if reason == "csv_width" and "quotes" in detail:
        return "close the quote in that line, or double it if it is part of the text"
    if reason == "nested" and "same" in detail:
        return "rename one of them in the program that writes the records"
    if reason == "not_json" and kind == "kafka":
        return (
            "check what writes to the topic: each message must be a JSON object; "
            f"{section}.value_format reads Avro and Protobuf"
        )
    if reason == "not_json" and kind == "journal":
        return "write each record as a JSON object, names and values"
    if reason == "corrupt" and kind not in ("kafka", ""):
        return "that file cannot be read: the log says why"
    if reason == "refused" and detail:
        # Said by Python itself: a text for a step that reckons, say.
        mute = detail.startswith("TypeError") and kind != "river"
        return f"{section}.inputs.exclude leaves out columns that a step cannot use" if mute else ""
    return _REMEDIES.get(reason, "the dead letters say why").format(section=section)


def explained(reason: str, section: str, kind: str, detail: str) -> str:
    """Return why the first of some dead letters cannot be used, and what to do about it.

    Examples
    --------
    >>> explained("refused", "source", "csv", "TypeError: a text")
    'TypeError: a text: source.inputs.exclude leaves out columns that a step cannot use'

    """
    advice = remedy(reason, section, kind, detail)
    return f"{detail}: {advice}" if advice else detail
