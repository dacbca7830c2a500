"""What a checkpoint says beside the model: positions, marks of outputs, accounts, late labels."""

import copy
import json
import random
from pathlib import Path

from benchmarks.fuzz.mutation import altered, odd
from benchmarks.fuzz.saved import Saved, joined
from benchmarks.fuzz.target import Target, unexpected
from streamkernel.connectors.kafka.writing.line import Line
from streamkernel.connectors.kafka.writing.mark import OutputMark
from streamkernel.connectors.ports import Position

_KAFKA = OutputMark("c/t/n", "me", "id", 6, 7, [Line(b"{}", Position("c/t/n", 0, 4))]).to_json()


class Marks(Target):
    """Heads of which one place is gone, doubled or another value, and marks of topics."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self._saved = [Saved(folder / "plain", "growing"), Saved(folder / "late", "growing", late=True)]

    def case(self, draw: random.Random) -> str | None:
        if draw.random() < 0.3:
            return _of_topic(draw)
        saved = draw.choice(self._saved)
        head = copy.deepcopy(saved.head)
        header = head["header"]
        choice = draw.random()
        if choice < 0.5:
            key = draw.choice(list(header))
            header[key] = altered(draw, header[key])
        elif choice < 0.8:
            output = draw.choice(list(header["outputs"]))
            header["outputs"][output]["mark"] = draw.choice((odd, lambda d: altered(d, _KAFKA)))(draw)
        else:
            head = altered(draw, head)
        data = joined(saved.whole, json.dumps(head).encode(), saved.payload)
        return saved.restarted(self.folder / "again", data)


def _of_topic(draw: random.Random) -> str | None:
    mark = copy.deepcopy(_KAFKA)
    for _ in range(draw.choice((1, 2, 4))):
        mark = altered(draw, mark)
    try:
        OutputMark.from_json(mark)
    except Exception as error:
        return unexpected(error)
    return None
