"""The daemon end to end: CSV in, predictions and metrics out, beside the same loop written by hand with River.

    python -m benchmarks.daemon [--records N] [--runs N] [--out DIR]

The peer is River's RBFSampler | LogisticRegression with as many random features, reading with csv and writing JSON. The
runs of both alternate, so that a machine whose speed drifts treats them alike.
"""

import argparse
import csv
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from river import feature_extraction, linear_model, preprocessing

from benchmarks.report import machine, table, write

FEATURES = 512
INPUTS = "abcdefgh"
CONFIG = """
source: {{kind: csv, path: {folder}/stream.csv, target: label, target_type: bool}}
model:
  - streamkernel.KernelClassifier: {{max_features: {features}, seed: 1}}
predictions: {{kind: jsonl, path: {folder}/predictions.jsonl}}
dead_letters: {{kind: jsonl, path: {folder}/dead-letters.jsonl}}
checkpoint: {{directory: {folder}/state}}
metrics: {{port: 0}}
"""


def make_stream(path: Path, n_records: int) -> None:
    """Eight numbers and a non-linear label a line."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n_records, len(INPUTS)))
    y = np.sin(2 * X[:, 0]) + X[:, 1] * X[:, 2] > 0
    with path.open("w") as lines:
        lines.write(",".join(INPUTS) + ",label\n")
        for row, label in zip(X, y, strict=True):
            lines.write(",".join(f"{value:.6f}" for value in row) + f",{bool(label)}\n")


def daemon(folder: Path, n_records: int) -> float:
    """Seconds of a whole run of the process."""
    config = folder / "config.yaml"
    config.write_text(CONFIG.format(folder=folder, features=FEATURES))
    start = time.perf_counter()
    command = [sys.executable, "-m", "streamkernel", "run", str(config), "--fresh", "--max-records", str(n_records)]
    subprocess.run(command, check=True, capture_output=True)
    seconds = time.perf_counter() - start
    with (folder / "predictions.jsonl").open() as lines:
        assert sum(1 for _ in lines) == n_records, "the daemon did not predict every record"
    return seconds


def by_hand(folder: Path, n_records: int) -> float:
    """Seconds of the loop a River user would write."""
    model = (
        preprocessing.StandardScaler()
        | feature_extraction.RBFSampler(gamma=0.1, n_components=FEATURES, seed=1)
        | linear_model.LogisticRegression()
    )
    start = time.perf_counter()
    with (folder / "stream.csv").open() as lines, (folder / "by-hand.jsonl").open("w") as out:
        for number, row in enumerate(csv.DictReader(lines)):
            if number == n_records:
                break
            y = row.pop("label") == "True"
            x = {name: float(value) for name, value in row.items()}
            chance = model.predict_proba_one(x)
            out.write(json.dumps({"position": number, "probabilities": {str(k): v for k, v in chance.items()}}) + "\n")
            model.learn_one(x, y)
    return time.perf_counter() - start


def spread(values: Sequence[float]) -> str:
    """Median, lowest and highest."""
    return f"{statistics.median(values):,.0f} ({min(values):,.0f} to {max(values):,.0f})"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--records", type=int, default=400_000)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results")
    options = parser.parse_args()
    peer_records = max(options.records // 200, 100)
    whole, steady, peer, starts = [], [], [], []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        make_stream(folder / "stream.csv", options.records)
        daemon(folder, 1000)  # fills the compiler's cache, which a fresh machine fills once
        for _ in range(options.runs):
            seconds, start = daemon(folder, options.records), daemon(folder, 100)
            whole.append(options.records / seconds)
            steady.append((options.records - 100) / (seconds - start))
            starts.append(start)
            peer.append(peer_records / by_hand(folder, peer_records))
    ratio = [ours / theirs for ours, theirs in zip(steady, peer, strict=True)]
    write(
        options.out / "daemon.md",
        "\n\n".join(
            [
                "# The daemon end to end",
                f"`python -m benchmarks.daemon` on {machine()}; CSV of 8 numbers, {options.records:,} records, "
                f"{FEATURES} random features, predictions, checkpoints and metrics on; median (lowest to highest) of "
                f"{options.runs} runs.",
                table(
                    ["what", "records/s"],
                    [
                        ["`streamkernel run`, whole process", spread(whole)],
                        ["`streamkernel run`, without its start", spread(steady)],
                        [f"by hand, River RBFSampler + LogisticRegression ({peer_records:,} records)", spread(peer)],
                        ["ratio of the last two", f"{spread(ratio)} x"],
                    ],
                ),
                f"Start of the process (imports, compiled code from its cache, a checkpoint, 100 records): "
                f"{statistics.median(starts):.1f} s.",
            ]
        ),
    )


if __name__ == "__main__":
    main()
