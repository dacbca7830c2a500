"""What goes to standard output: JSON, and nothing but lines where they go there."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from streamkernel.daemon.config.plan import Plan

__all__ = ["prints_lines", "to_json"]


def prints_lines(plan: Plan) -> bool:
    """Return whether lines go to standard output: they are for the next program, and nothing else comes between."""
    outputs = (plan.config.predictions, plan.config.dead_letters)
    return any(getattr(output, "path", None) == "-" for output in outputs)


def to_json(value: Any) -> str:
    import orjson

    return orjson.dumps(value, option=orjson.OPT_INDENT_2).decode()  # NaN becomes null: JSON has no other word for it
