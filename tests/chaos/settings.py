"""The configurations of the daemon that the failures are tried on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

EVERY_SECONDS = 0.5
"""Between two checkpoints, at most."""

FLUSH_SECONDS = 0.1
"""How long after a record was read its line is to be there: several times between two checkpoints."""


@dataclass(frozen=True)
class Setting:
    """A kind of configuration."""

    name: str
    partitions: int = 1
    outputs: str = "topics"  #: or "transactions" (topics, several transactions a checkpoint), or "files"
    order: str = "arrival"
    group: bool = False  #: whether the daemons are members of a group, with a model for each partition
    source: str = "kafka"  #: or a key of `tests.chaos.intake.INTAKES`

    @property
    def reproducible(self) -> bool:
        """Whether each model must be that of an undisturbed run."""
        return self.partitions == 1 or self.order == "logged" or self.group

    def sections(self, bootstrap: str, topics: dict[str, str], **source: Any) -> dict[str, Any]:
        """Make the sections of the configuration that say where records come from and lines go to."""
        kafka = {"kind": "kafka", "bootstrap_servers": bootstrap}
        reading = {"target": "y", **source}
        if self.source == "kafka":
            reading = {**kafka, "topic": topics["records"], "order": self.order, **reading}
        own = "-{partition}" if self.group else ""
        if self.group:
            reading["group"] = f"group-of-{topics['records']}"
            timing = {"session_timeout_ms": 1500, "heartbeat_interval_ms": 300}
            reading["options"] = {**timing, **source.get("options", {})}
        if self.outputs == "files":
            writing = {key: {"kind": "jsonl", "path": f"out/{key}.jsonl"} for key in ("predictions", "dead_letters")}
        else:
            writing = {key: {**kafka, "topic": topics[key]} for key in ("predictions", "dead_letters")}
            if self.outputs == "transactions":
                for key, section in writing.items():
                    section["transactional_id"] = topics[key] + own
        return {"source": reading, **writing}


PLAIN = Setting("topics")
TRANSACTIONS = Setting("topics, transactions", outputs="transactions")
FILES = Setting("files", outputs="files")
LOGGED = Setting("3 partitions, order: logged", partitions=3, order="logged")
ARRIVAL = Setting("3 partitions, transactions", partitions=3, outputs="transactions")
GROUP = Setting("group, 3 partitions, transactions", partitions=3, outputs="transactions", group=True)
WATCHED = Setting("watched directory, transactions", outputs="transactions", source="directory")
JOURNAL = Setting("journal, transactions", outputs="transactions", source="journal")
