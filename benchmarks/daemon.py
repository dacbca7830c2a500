"""The daemon end to end: records in, predictions and metrics out, beside the same loop written by hand with River.

    python -m benchmarks.daemon [--records N] [--runs N] [--out DIR]

JSON lines and CSV. The peer is River's RBFSampler | LogisticRegression with as many random features, reading and
writing JSON. The runs of all alternate, so that a machine whose speed drifts treats them alike. Every process has one
thread for arithmetic.
"""

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from pathlib import Path
from typing import Any, NamedTuple

from river import feature_extraction, linear_model, preprocessing

from benchmarks.command import asked
from benchmarks.report import publish, span, table
from benchmarks.waves import write_waves

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
    options = asked(__doc__, records=1_000_000, runs=5)
    peer_records = max(options.records // 500, 100)
    rates: dict[str, list[float]] = defaultdict(list)
    profile: dict[str, list[dict[str, float]]] = defaultdict(list)
    starts: list[float] = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for kind in KINDS:
            write_waves(folder / f"stream.{kind}", options.records, INPUTS)
        daemon(folder, "jsonl", 1000)  # fills the compiler's cache, which a fresh machine fills once
        for _ in range(options.runs):
            for kind, called in KINDS.items():
                start, whole = daemon(folder, kind, 100), daemon(folder, kind, options.records)
                starts.append(start.wall)
                n = options.records - 100
                rates[f"{called}: the loop, without the start of the process"].append(n / (whole.wall - start.wall))
                rates[f"{called}: the same a second of CPU"].append(n / (whole.cpu - start.cpu))
                rates[f"{called}: the whole process"].append(options.records / whole.wall)
                profile[kind].append(parts(folder, kind, options.records))
            by = f"by hand, River RBFSampler + LogisticRegression ({peer_records:,} records)"
            rates[by].append(peer_records / by_hand(folder, peer_records))
    loops = rates["JSON lines: the loop, without the start of the process"]
    ratio = [ours / theirs for ours, theirs in zip(loops, rates[by], strict=True)]
    rows = [[what, span(values)] for what, values in rates.items()]
    publish(
        options,
        "daemon",
        "The daemon end to end",
        f"`streamkernel run` over {options.records:,} records of {len(INPUTS)} numbers, "
        f"`KernelClassifier(max_features={FEATURES})`, predictions, dead letters, checkpoints and metrics on; median "
        f"(lowest to highest) of {options.runs} runs.",
        table(["what", "records/s"], [*rows, ["ratio of the loops on JSON lines", f"{span(ratio)} x"]]),
        "Start of the process (imports, compiled code from its cache, a checkpoint, 100 records): "
        f"{statistics.median(starts):.1f} s.",
        "## Where the time goes",
        "`python -m benchmarks.daemon_parts`: time each part had to itself, waiting for the disk included.",
        shares(profile),
    )


if __name__ == "__main__":
    main()
