"""Checkpoints whose SHA-256 is right and whose contents are not."""

import json
import random
from pathlib import Path

from benchmarks.fuzz.mutation import mutated
from benchmarks.fuzz.saved import Saved, joined, summed
from benchmarks.fuzz.target import MODELS, Target

_END = 40


class Checkpoints(Target):
    """Whole files and payloads with odd bytes, of each kind of model."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self._saved = [Saved(folder / model, model) for model in MODELS]
        self._saved.append(Saved(folder / "late", "growing", late=True))

    def case(self, draw: random.Random) -> str | None:
        saved = draw.choice(self._saved)
        choice = draw.random()
        if choice < 0.1:
            data = mutated(draw, saved.whole)
        elif choice < 0.3:
            data = summed(mutated(draw, saved.whole[:-_END]))
        else:
            payload = mutated(draw, saved.payload)
            head = {**saved.head, "payload_length": len(payload)}
            data = joined(saved.whole, json.dumps(head).encode(), payload)
        return saved.restarted(self.folder / "again", data)
