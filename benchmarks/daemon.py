"""The daemon end to end: records in, predictions and metrics out, beside the same loop written by hand with River.

    python -m benchmarks.daemon [--records N] [--runs N] [--out DIR]

JSON lines and CSV, and several models; slower ones get fewer records. Beside it are orjson alone on the same lines, and
River's RBFSampler | LogisticRegression with as many random features, reading and writing JSON. The runs of all
alternate, so that a machine whose speed drifts treats them alike. Every process has one thread for arithmetic.
"""

import json
import os
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import orjson
from river import feature_extraction, linear_model, preprocessing

from benchmarks.command import asked
from benchmarks.report import publish, span, table
from benchmarks.waves import waves, write_waves

FEATURES = 512
INPUTS = "abcdefgh"
N_TEXTS, N_VALUES = 3, 100
CONFIG = """
source: {{kind: {kind}, path: {folder}/{stream}.{kind}, target: label, target_type: bool}}
model:
  - streamkernel.{model}
predictions: {{kind: jsonl, path: {folder}/predictions.jsonl}}
dead_letters: {{kind: jsonl, path: {folder}/dead-letters.jsonl}}
checkpoint: {{directory: {folder}/state}}
metrics: {{port: 0}}
"""


class Case(NamedTuple):
    """A stream and a model, and the part of the records that it gets."""

    stream: str
    kind: str
    model: str
    share: float = 1.0


_GROWING = f"KernelClassifier: {{max_features: {FEATURES}, seed: 1"
PLAIN = "plain steps, JSON lines"
CASES = {
    PLAIN: Case("stream", "jsonl", f"{_GROWING}, precondition: false}}"),
    "plain steps, CSV": Case("stream", "csv", f"{_GROWING}, precondition: false}}"),
    "preconditioned steps, JSON lines": Case("stream", "jsonl", f"{_GROWING}, precondition: true}}"),
    "default, JSON lines": Case("stream", "jsonl", f"{_GROWING}}}"),
    "default, CSV": Case("stream", "csv", f"{_GROWING}}}"),
    "adaptive, JSON lines": Case("stream", "jsonl", "AdaptiveKernelClassifier: {seed: 1}", 0.2),
    f"adaptive, {N_TEXTS} texts of {N_VALUES} values, too": Case(
        "texts", "jsonl", "AdaptiveKernelClassifier: {seed: 1}", 0.2
    ),
}


class Cost(NamedTuple):
    """What a process took from its start to its end, in seconds."""

    wall: float
    cpu: float


def write_texts(path: Path, n_records: int) -> None:
    """Write the same stream with texts, which the label does not follow from."""
    texts = np.random.default_rng(1).integers(0, N_VALUES, (n_records, N_TEXTS)).tolist()
    with path.open("w") as lines:
        for (x, y), values in zip(waves(n_records, INPUTS, 6), texts, strict=True):
            more = {f"text{place}": f"value {value}" for place, value in enumerate(values)}
            lines.write(json.dumps({**x, **more, "label": y}) + "\n")


def configure(folder: Path, case: Case) -> Path:
    config = folder / "config.yaml"
    config.write_text(CONFIG.format(folder=folder, **case._asdict()))
    return config


def daemon(folder: Path, case: Case, n_records: int) -> Cost:
    """A whole run of the process."""
    command = [sys.executable, "-m", "streamkernel", "run", str(configure(folder, case)), "--fresh"]
    start = time.perf_counter()
    process = subprocess.Popen(
        [*command, "--max-records", str(n_records)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    _, status, usage = os.wait4(process.pid, 0)
    cost = Cost(time.perf_counter() - start, usage.ru_utime + usage.ru_stime)
    process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 0, f"the daemon failed: {' '.join(command)}"
    with (folder / "predictions.jsonl").open() as lines:
        assert sum(1 for _ in lines) == n_records, "the daemon did not predict every record"
    return cost


def parts(folder: Path, case: Case, n_records: int) -> dict[str, float]:
    """Seconds a million records each part of the daemon had to itself, in one run."""
    command = [sys.executable, "-m", "benchmarks.daemon_parts", str(configure(folder, case))]
    done = subprocess.run([*command, "--max-records", str(n_records)], check=True, capture_output=True)
    found: dict[str, Any] = json.loads(done.stdout)
    return {part: 1e6 * seconds / found["records"] for part, seconds in found["parts"].items()}


def loaded(folder: Path) -> float:
    """Lines a second of orjson alone."""
    lines = (folder / "stream.jsonl").read_bytes().splitlines()
    start = time.perf_counter()
    for line in lines:
        orjson.loads(line)
    return len(lines) / (time.perf_counter() - start)


def by_hand(folder: Path, n_records: int) -> float:
    """Seconds of the loop a River user would write."""
    model = (
        preprocessing.StandardScaler()
        | feature_extraction.RBFSampler(gamma=0.1, n_components=FEATURES, seed=1)
        | linear_model.LogisticRegression()
    )
    start = time.perf_counter()
    with (folder / "stream.jsonl").open() as lines, (folder / "by-hand.jsonl").open("w") as out:
        for number, line in enumerate(lines):
            if number == n_records:
                break
            x = json.loads(line)
            y = x.pop("label")
            chance = model.predict_proba_one(x)
            out.write(json.dumps({"position": number, "probabilities": {str(k): v for k, v in chance.items()}}) + "\n")
            model.learn_one(x, y)
    return time.perf_counter() - start


def shares(found: dict[str, list[dict[str, float]]]) -> str:
    """Where the time goes: of each case, the run whose whole took the median."""
    chosen = {what: sorted(runs, key=lambda run: sum(run.values()))[len(runs) // 2] for what, runs in found.items()}
    rows = [
        [part, *(f"{run[part]:.2f} ({run[part] / sum(run.values()):.0%})" for run in chosen.values())]
        for part in next(iter(chosen.values()))
    ]
    whole = ["whole loop", *(f"{sum(run.values()):.2f}" for run in chosen.values())]
    return table(["part, us a record", *chosen], [*rows, whole])


def main() -> None:
    options = asked(__doc__, records=500_000, runs=5)
    peer_records = max(options.records // 500, 100)
    rates: dict[str, list[list[float]]] = defaultdict(list)  # of the loop, a second of CPU, and of the process
    profile: dict[str, list[dict[str, float]]] = defaultdict(list)
    starts, alone, by_peer = [], [], []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for kind in ("jsonl", "csv"):
            write_waves(folder / f"stream.{kind}", options.records, INPUTS)
        write_texts(folder / "texts.jsonl", options.records)
        for case in CASES.values():
            daemon(folder, case, 1000)  # fills the compiler's cache, which a fresh machine fills once
        for _ in range(options.runs):
            alone.append(loaded(folder))
            for what, case in CASES.items():
                n = int(case.share * options.records)
                start, whole = daemon(folder, case, 100), daemon(folder, case, n)
                starts.append(start.wall)
                spent = whole.wall - start.wall, whole.cpu - start.cpu
                rates[what].append([*((n - 100) / seconds for seconds in spent), n / whole.wall])
                if case.share == 1.0:
                    profile[what].append(parts(folder, case, n))
            by_peer.append(peer_records / by_hand(folder, peer_records))
    plain = [run[0] for run in rates[PLAIN]]
    default = [run[0] for run in rates["default, JSON lines"]]
    publish(
        options,
        "daemon",
        "The daemon end to end",
        f"`streamkernel run` over {options.records:,} records of {len(INPUTS)} numbers (adaptive: a fifth of them), "
        f"`KernelClassifier(max_features={FEATURES})` or `AdaptiveKernelClassifier()`, predictions, dead letters, "
        f"checkpoints and metrics on; median (lowest to highest) of {options.runs} runs.",
        table(
            ["model and source", "the loop, records/s", "records a second of CPU", "the whole process, records/s"],
            [[what, *map(span, zip(*runs, strict=True))] for what, runs in rates.items()],
        ),
        table(
            ["beside them", "measured"],
            [
                ["orjson.loads alone, lines/s", span(alone)],
                ["plain steps, JSON lines, as a part of that", span(_ratios(plain, alone), ".3f")],
                [
                    f"by hand, River RBFSampler + LogisticRegression ({peer_records:,} records), records/s",
                    span(by_peer),
                ],
                ["default, JSON lines, times as fast as that", span(_ratios(default, by_peer))],
                ["start of the process: imports, compiled code, a checkpoint, 100 records, s", span(starts, ".1f")],
            ],
        ),
        "## Where the time goes",
        "`python -m benchmarks.daemon_parts`: time each part had to itself, waiting for the disk included.",
        shares(profile),
    )


def _ratios(ours: list[float], theirs: list[float]) -> list[float]:
    return [one / other for one, other in zip(ours, theirs, strict=True)]


if __name__ == "__main__":
    main()
