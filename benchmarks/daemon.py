"""The daemon end to end: records in, predictions and metrics out, beside the same loop written by hand with River.

    python -m benchmarks.daemon [--records N] [--runs N] [--out DIR]

JSON lines and CSV. The peer is River's RBFSampler | LogisticRegression with as many random features, reading and
writing JSON. The runs of all alternate, so that a machine whose speed drifts treats them alike. Every process has one
thread for arithmetic.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

# NumPy reads these when it is imported, here and in the processes started from here.
os.environ.update(dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS"), "1"))

import numpy as np
from river import feature_extraction, linear_model, preprocessing

from benchmarks import decoding
from benchmarks.report import machine, table, write

FEATURES = 512
INPUTS = "abcdefgh"
KINDS = {"jsonl": "JSON lines", "csv": "CSV"}
CONFIG = """
source: {{kind: {kind}, path: {folder}/stream.{kind}, target: label, target_type: bool}}
model:
  - streamkernel.KernelClassifier: {{max_features: {features}, seed: 1}}
predictions: {{kind: jsonl, path: {folder}/predictions.jsonl}}
dead_letters: {{kind: jsonl, path: {folder}/dead-letters.jsonl}}
checkpoint: {{directory: {folder}/state}}
metrics: {{port: 0}}
"""


class Cost(NamedTuple):
    """What a process took from its start to its end, in seconds."""

    wall: float
    cpu: float


def make_streams(folder: Path, n_records: int) -> None:
    """Eight numbers and a non-linear label a line, the same in both formats."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n_records, len(INPUTS)))
    y = np.sin(2 * X[:, 0]) + X[:, 1] * X[:, 2] > 0
    with (folder / "stream.jsonl").open("w") as objects, (folder / "stream.csv").open("w") as rows:
        rows.write(",".join(INPUTS) + ",label\n")
        for row, label in zip(X, y.tolist(), strict=True):
            texts = [f"{value:.6f}" for value in row]
            rows.write(",".join(texts) + f",{label}\n")
            numbers = ", ".join(f'"{name}": {text}' for name, text in zip(INPUTS, texts, strict=True))
            objects.write(f'{{{numbers}, "label": {json.dumps(label)}}}\n')


def configure(folder: Path, kind: str) -> Path:
    config = folder / f"{kind}.yaml"
    config.write_text(CONFIG.format(folder=folder, kind=kind, features=FEATURES))
    return config


def daemon(folder: Path, kind: str, n_records: int) -> Cost:
    """A whole run of the process."""
    command = [sys.executable, "-m", "streamkernel", "run", str(configure(folder, kind)), "--fresh"]
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


def parts(folder: Path, kind: str, n_records: int) -> dict[str, float]:
    """Seconds a million records each part of the daemon had to itself, in one run."""
    command = [sys.executable, "-m", "benchmarks.daemon_parts", str(configure(folder, kind))]
    done = subprocess.run([*command, "--max-records", str(n_records)], check=True, capture_output=True)
    found: dict[str, Any] = json.loads(done.stdout)
    return {part: 1e6 * seconds / found["records"] for part, seconds in found["parts"].items()}


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


def spread(values: Sequence[float]) -> str:
    """Median, lowest and highest."""
    return f"{statistics.median(values):,.0f} ({min(values):,.0f} to {max(values):,.0f})"


def shares(found: dict[str, list[dict[str, float]]]) -> str:
    """Where the time goes: of each kind of stream, the run whose whole took the median."""
    chosen = {kind: sorted(runs, key=lambda run: sum(run.values()))[len(runs) // 2] for kind, runs in found.items()}
    header = ["part", *(f"{KINDS[kind]}, us a record | share" for kind in chosen)]
    rows: list[list[str]] = []
    for part in next(iter(chosen.values())):
        row = [part]
        for run in chosen.values():
            row += [f"{run[part]:.2f}", f"{run[part] / sum(run.values()):.1%}"]
        rows.append(row)
    whole = ["whole loop"]
    for run in chosen.values():
        whole += [f"{sum(run.values()):.2f}", "100%"]
    return table(" | ".join(header).split(" | "), [*rows, whole])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--records", type=int, default=1_000_000)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results")
    options = parser.parse_args()
    peer_records = max(options.records // 500, 100)
    rates: dict[str, list[float]] = defaultdict(list)
    profile: dict[str, list[dict[str, float]]] = defaultdict(list)
    starts: list[float] = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        make_streams(folder, options.records)
        daemon(folder, "jsonl", 1000)  # fills the compiler's cache, which a fresh machine fills once
        for _ in range(options.runs):
            for kind in KINDS:
                start, whole = daemon(folder, kind, 100), daemon(folder, kind, options.records)
                starts.append(start.wall)
                rates[f"{kind} whole"].append(options.records / whole.wall)
                rates[f"{kind} loop"].append((options.records - 100) / (whole.wall - start.wall))
                rates[f"{kind} cpu"].append((options.records - 100) / (whole.cpu - start.cpu))
                profile[kind].append(parts(folder, kind, options.records))
            rates["peer"].append(peer_records / by_hand(folder, peer_records))
        decoded = decoding.measure(folder, options.runs)
    ratio = [ours / theirs for ours, theirs in zip(rates["jsonl loop"], rates["peer"], strict=True)]
    rows = []
    for kind, called in KINDS.items():
        rows += [
            [f"{called}: the loop, without the start of the process", spread(rates[f"{kind} loop"])],
            [f"{called}: the same a second of CPU", spread(rates[f"{kind} cpu"])],
            [f"{called}: the whole process", spread(rates[f"{kind} whole"])],
        ]
    rows += [
        [f"by hand, River RBFSampler + LogisticRegression ({peer_records:,} records)", spread(rates["peer"])],
        ["ratio of the loops on JSON lines", f"{spread(ratio)} x"],
    ]
    write(
        options.out / "daemon.md",
        "\n\n".join(
            [
                "# The daemon end to end",
                f"`python -m benchmarks.daemon` on {machine()}; `streamkernel run` over {options.records:,} records of "
                f"{len(INPUTS)} numbers, `KernelClassifier(max_features={FEATURES})`, predictions, "
                f"dead letters, checkpoints and metrics on; median (lowest to highest) of {options.runs} runs.",
                table(["what", "records/s"], rows),
                "Start of the process (imports, compiled code from its cache, a checkpoint, 100 records): "
                f"{statistics.median(starts):.1f} s.",
                "## Where the time goes",
                "`python -m benchmarks.daemon_parts`: time each part had to itself, waiting for the disk included.",
                shares(profile),
                "## Decoding alone",
                "Records a second of CPU from the file to dictionaries, in one process. Ours are whole records, with "
                "the position and the raw bytes of each line and every value checked; the others stop at the "
                "dictionary.",
                table(["what", "records/s"], [[name, spread(values)] for name, values in decoded.items()]),
            ]
        ),
    )


if __name__ == "__main__":
    main()
