"""Bytes as records: a file of anything, through a whole daemon."""

import json
import random
import shutil
from typing import Any

from benchmarks.fuzz.mutation import NUMBERS, mutated, odd
from benchmarks.fuzz.target import MODELS, Target, configured, ran, ran_once, takes_numbers, unsound

_RECORDS = 120
# The names our models know are bounded. River's are not: a Gaussian of its naive Bayes takes 4 kB in each checkpoint.
_MOST_NAMES = {**dict.fromkeys(MODELS, 20_000), "linear": 1_000, "bayes": 1_000}
_NAMES = ("a", "b", "color", "y", "id", "other")


class Records(Target):
    """Files of CSV or JSON lines with odd values, odd bytes, many names and many labels."""

    def warm_up(self) -> None:
        for model in MODELS:
            ran_once(self.folder / model, model)

    def case(self, draw: random.Random) -> str | None:
        shutil.rmtree(self.folder, ignore_errors=True)
        self.folder.mkdir(parents=True)
        kind = draw.choice(("csv", "jsonl"))
        model = draw.choice(list(MODELS))
        numbers = takes_numbers(model)
        path = self.folder / f"stream.{kind}"
        data = _csv(draw, numbers) if kind == "csv" else _json_lines(draw, numbers, _MOST_NAMES[model])
        path.write_bytes(mutated(draw, data) if draw.random() < 0.5 else data)
        source: dict[str, Any] = {"kind": kind, "path": str(path), "target": "y"}
        source["target_type"] = "float" if numbers else draw.choice(("str", "int"))
        if kind == "csv":
            source["multiline"] = draw.random() < 0.3
        config = configured(self.folder / "config.yaml", source=source, model=MODELS[model])
        found = ran(config)
        # A file without a header is no stream, and a daemon that ended for it has nothing to show.
        return found or (unsound(self.folder) if (self.folder / "predictions.jsonl").exists() else None)


def _value(draw: random.Random, strange: float) -> Any:
    choice = draw.random()
    if choice > strange:
        return round(draw.gauss(0, 1), 3)
    if choice > 0.5 * strange:
        return draw.choice(NUMBERS)
    return odd(draw)


def _label(draw: random.Random, numbers: bool, strange: float) -> Any:
    if draw.random() < strange:
        return draw.choice((*NUMBERS, (2**61 - 1) * draw.randrange(1000), f"label {draw.randrange(10**6)}", None))
    return draw.gauss(5, 2) if numbers else draw.randrange(2)


def _json_lines(draw: random.Random, numbers: bool, most_names: int) -> bytes:
    strange = draw.choice((0.0, 0.02, 0.3))
    lines = []
    for _ in range(_RECORDS):
        record = {name: _value(draw, strange) for name in _NAMES if draw.random() < 0.9}
        if draw.random() < 0.3 * strange:
            names = min(draw.choice((10, 1000, 20_000)), most_names)
            record |= {f"name {draw.randrange(10**9)}": 1.0 for _ in range(names)}
        lines.append(json.dumps({**record, "y": _label(draw, numbers, strange)}))
    return "\n".join(lines).encode("utf-8", "surrogatepass")


def _csv(draw: random.Random, numbers: bool) -> bytes:
    strange = draw.choice((0.0, 0.02, 0.3))
    lines = [",".join(_NAMES)]
    for _ in range(_RECORDS):
        values = [_label(draw, numbers, strange) if name == "y" else _value(draw, strange) for name in _NAMES]
        lines.append(",".join(map(str, values)))
    return "\n".join(lines).encode("utf-8", "surrogatepass")
