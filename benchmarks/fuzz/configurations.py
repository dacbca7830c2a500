"""Configurations: YAML that nobody would write, and what is built of it."""

import copy
import random
import warnings
from pathlib import Path
from typing import Any

import yaml

from benchmarks.fuzz.mutation import altered, mutated
from benchmarks.fuzz.target import MODELS, Target, ran_once, unexpected
from streamkernel.daemon.assembly.plan import prepare

# YAML's own types, which a value may be said to have.
_TAGS = (b"bool", b"int", b"float", b"null", b"timestamp", b"binary", b"set", b"omap", b"pairs", b"seq", b"map", b"str")
_BOOKS = (
    {
        "source": {"kind": "csv", "path": "a.csv", "target": "y", "follow": True, "delimiter": ";"},
        "predictions": {"kind": "csv", "path": "b.csv"},
        "dead_letters": {"kind": "jsonl", "path": "c.jsonl", "max_rate": 0.5},
        "checkpoint": {"directory": "state", "every_records": 10, "every_seconds": 1.5, "keep": 3},
        "metrics": {"host": "127.0.0.1", "port": 0, "window": 100, "report": ["accuracy"]},
        "limits": {"max_record_bytes": 1000, "max_string": 100},
        "log": {"level": "info", "format": "text"},
    },
    {
        "source": {"kind": "kafka", "bootstrap_servers": "localhost:9092", "topic": "t", "target": "y"},
        "labels": {"source": {"kind": "jsonl", "path": "l.jsonl", "target": "y"}, "key": "id", "max_pending": 10},
        "predictions": {"kind": "kafka", "bootstrap_servers": "localhost:9092", "topic": "p"},
        "checkpoint": {"directory": "state"},
        "mode": "learn",
    },
)


class Configurations(Target):
    """Documents with one to four odd places, or odd bytes, read and built; nothing is opened."""

    def warm_up(self) -> None:
        for model in MODELS:
            ran_once(self.folder / model, model)

    def case(self, draw: random.Random) -> str | None:
        document: dict[str, Any] = copy.deepcopy(draw.choice(_BOOKS))
        document["model"] = draw.choice(list(MODELS.values()))
        for _ in range(draw.choice((0, 1, 2, 4))):
            document = altered(draw, document)
        data = yaml.safe_dump(document, allow_unicode=True, sort_keys=False).encode("utf-8", "backslashreplace")
        path: Path = self.folder / "config.yaml"
        self.folder.mkdir(parents=True, exist_ok=True)
        data = mutated(draw, data) if draw.random() < 0.4 else data
        path.write_bytes(_tagged(draw, data) if draw.random() < 0.1 else data)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                prepare(path, {"X": "\x1b[31m"})
            except Exception as error:
                return unexpected(error)
        return None


def _tagged(draw: random.Random, data: bytes) -> bytes:
    """The same document but for one value, which has a tag before it."""
    first, *values = data.split(b": ")
    place = draw.randrange(len(values)) if values else 0
    tagged = [b"!!%b %b" % (draw.choice(_TAGS), one) if at == place else one for at, one in enumerate(values)]
    return b": ".join([first, *tagged])
