"""The state of an output topic that a checkpoint keeps."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from streamkernel.connectors.kafka.writing.last_lines import LastLines
from streamkernel.connectors.kafka.writing.line import Line, pack, unpack
from streamkernel.connectors.ports import SinkError

__all__ = ["OutputMark"]


@dataclass(frozen=True)
class OutputMark:
    """What a run must know to continue an output topic.

    Attributes
    ----------
    stream
        The topic: ``"cluster/topic/number"``.
    writer
        What the lines are signed with.
    transactional_id
        That of the configuration.
    committed
        The number of the last transaction that is surely committed.
    number
        The number of the transaction that holds the `lines`; `committed` where there are none.
    lines
        The lines since: whether they are in the topic, the broker knows.
    skipped
        The last lines up to which those of an older checkpoint are skipped, as `LastLines` writes them.

    """

    stream: str
    writer: str
    transactional_id: str | None = None
    committed: int = 0
    number: int = 0
    lines: list[Line] = field(default_factory=list)
    skipped: str = "[]"

    def to_json(self) -> dict[str, Any]:
        """Return the mark as a checkpoint has it.

        Examples
        --------
        >>> mark = OutputMark("c/t/n", "me", "id", 6, 7, [])
        >>> OutputMark.from_json(mark.to_json()) == mark
        True

        """
        return {**self.__dict__, "lines": pack(self.lines)}

    @classmethod
    def from_json(cls, mark: Any) -> OutputMark:
        """Return the mark that `to_json` returned; raises `SinkError` where it is none."""
        try:
            identity = mark["transactional_id"]
            made = cls(
                str(mark["stream"]),
                str(mark["writer"]),
                None if identity is None else str(identity),
                int(mark["committed"]),
                int(mark["number"]),
                unpack(mark["lines"]),
                LastLines.from_text(mark["skipped"]).to_text(),
            )
            if not 0 <= made.committed <= made.number:
                raise ValueError
        except (LookupError, TypeError, ValueError, AttributeError):
            raise SinkError("its mark in the checkpoint is not from a topic: start over with --fresh") from None
        return made
