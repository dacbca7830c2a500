"""The reasons of dead letters: every code there is for a record or a late label, as metrics and lines have it."""

from __future__ import annotations

__all__ = ["LABEL_REASONS", "REASONS"]

# Those of `streamkernel.connectors.ports.Fault`.
_FAULTS = (
    *("not_json", "not_an_object", "csv_width", "open_quote", "encoding", "too_long"),
    *("target", "infinite", "nested", "string_too_long", "input_type", "corrupt", "schema"),
)

REASONS = (*_FAULTS, "refused", "kills_process")
"""Of records: the daemon adds two of its own."""

LABEL_REASONS = (*_FAULTS, "key", "refused", "kills_process")
"""Of late labels, which may lack the key of their record, too."""
