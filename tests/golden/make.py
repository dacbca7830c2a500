"""Makes the golden checkpoints of the format that is written now: `python -m tests.golden.make [CASE...]`.

Each case is a folder with a configuration, its input, its outputs and the checkpoint of a run that was ended half way.
A case is made once, when the format or the case is new.
"""

from __future__ import annotations

import contextlib
import random
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import yaml

from streamkernel.connectors.kafka.writing.line import Line
from streamkernel.connectors.kafka.writing.mark import OutputMark
from streamkernel.connectors.ports import Position
from streamkernel.daemon.assembly.plan import prepare
from streamkernel.daemon.assembly.processor import make_processor
from streamkernel.daemon.base.counts import RecordCounts
from streamkernel.daemon.checkpoints.file import FORMAT_VERSION
from streamkernel.daemon.checkpoints.store import CheckpointStore
from streamkernel.daemon.promote import promote
from streamkernel.daemon.run_state.header import take_snapshot
from streamkernel.daemon.run_state.run_models import new_models
from streamkernel.daemon.run_state.start import Start
from streamkernel.daemon.runtime import run
from tests.daemon.conftest import write_stream
from tests.daemon.labels_stream import write_pair

PLACE = Path(__file__).parent / f"checkpoints-v{FORMAT_VERSION}"

PROMOTED = 120
HALF = 220
WHOLE = 300

SMALL = {
    "seed": 1,
    "n_features": 4,
    "drift_rates": [0.001],
    "metric_schedule": [50, 100],
    "buffer_size": 60,
    "n_trees": 1,
    "tree_window": 60,
}
CASES: dict[str, dict[str, Any]] = {
    "growing": {"model": [{"streamkernel.KernelClassifier": {"seed": 1, "max_features": 64}}]},
    "preconditioned": {
        "model": [
            {
                "streamkernel.KernelClassifier": {
                    "seed": 1,
                    "max_features": 128,
                    "average": True,
                    "kernel": {
                        "streamkernel.kernels.Sum": {
                            "left": {"streamkernel.kernels.Laplacian": {}},
                            "right": {"streamkernel.kernels.Polynomial": {"degree": 2}},
                        }
                    },
                }
            }
        ]
    },
    "adaptive-classifier": {
        "source": {"kind": "csv", "path": "stream.csv", "target": "label"},
        "model": [{"streamkernel.AdaptiveKernelClassifier": SMALL}],
    },
    "adaptive-regressor": {
        "source": {"kind": "csv", "path": "stream.csv", "target": "b", "target_type": "float"},
        "model": [{"streamkernel.AdaptiveKernelRegressor": SMALL}],
    },
    "gaussian-process": {
        "source": {"kind": "csv", "path": "stream.csv", "target": "b", "target_type": "float"},
        "model": [
            {
                "streamkernel.GaussianProcessRegressor": {
                    "seed": 1,
                    "n_features": 6,
                    "variance": {
                        "streamkernel.gaussian_process.TestPointFunctions": {
                            "points": [{"a": 3.0, "label": "true"}, {"a": 0.5}],
                            "batch_size": 16,
                            "block_size": 4,
                            "max_features": 16,
                        }
                    },
                }
            }
        ],
    },
    "window-refit": {
        "source": {"kind": "csv", "path": "stream.csv", "target": "label"},
        "model": [
            {
                "streamkernel.WindowRefit": {
                    "model": {"streamkernel.KernelClassifier": {"seed": 1, "max_features": 32, "block_size": 8}},
                    "window": 100,
                    "every": 70,
                    "solver": {"streamkernel.window.Exact": {"l2": 0.01, "tol": 0.001, "max_passes": 5}},
                }
            }
        ],
    },
    "river": {
        "source": {"kind": "csv", "path": "stream.csv", "target": "label", "target_type": "bool"},
        "model": ["river.preprocessing.StandardScaler", "river.linear_model.LogisticRegression"],
        "predictions": {"kind": "csv", "path": "predictions.csv"},
    },
    "late-labels": {
        "source": {"kind": "jsonl", "path": "records.jsonl", "target": "y"},
        "model": [{"streamkernel.KernelClassifier": {"seed": 1, "max_features": 64}}],
        "labels": {"source": {"kind": "jsonl", "path": "labels.jsonl", "target": "y"}, "key": "id"},
    },
    "several-models": {
        "source": {"kind": "jsonl", "path": "records.jsonl", "target": "y"},
        "model": None,
        "models": {
            "champion": [{"streamkernel.KernelClassifier": {"seed": 1, "max_features": 64}}],
            "challenger": [{"streamkernel.KernelClassifier": {"seed": 2, "max_features": 32}}],
            "river": [{"river.compose.Discard": {"args": ["color"]}}, "river.naive_bayes.GaussianNB"],
        },
        "predictions": {"kind": "jsonl", "path": "predictions.jsonl", "models": "all"},
        "labels": {"source": {"kind": "jsonl", "path": "labels.jsonl", "target": "y"}, "key": "id"},
    },
    "kafka": {
        "source": {"kind": "kafka", "bootstrap_servers": "127.0.0.1:9", "topic": "in", "target": "y"},
        "model": [{"streamkernel.KernelClassifier": {"seed": 1, "max_features": 64}}],
        "predictions": {
            "kind": "kafka",
            "bootstrap_servers": "127.0.0.1:9",
            "topic": "predictions",
            "transactional_id": "golden",
        },
        "dead_letters": {"kind": "kafka", "bootstrap_servers": "127.0.0.1:9", "topic": "dead"},
    },
}


def settings_of(case: str) -> dict[str, Any]:
    """Give the configuration of a case, everything below the working directory."""
    return {
        "source": {"kind": "csv", "path": "stream.csv", "target": "y"},
        "predictions": {"kind": "jsonl", "path": "predictions.jsonl"},
        "dead_letters": {"kind": "jsonl", "path": "dead.jsonl"},
        "checkpoint": {"directory": "state", "every_records": 1000, "keep": 1},
        "metrics": None,
        **CASES[case],
    }


def write_numbers(path: Path, records: int) -> None:
    """Write a stream of two numbers and a boolean."""
    draw = random.Random(1)
    rows = [(draw.gauss(3, 2), draw.gauss(0, 1)) for _ in range(records)]
    lines = [f"{a:.4f},{b:.4f},{str(a + b > 3).lower()}" for a, b in rows]
    path.write_text("\n".join(["a,b,label", *lines]) + "\n")


def make(case: str) -> None:
    """Make a case in the working directory."""
    config = Path("config.yaml")
    config.write_text(yaml.safe_dump(settings_of(case), sort_keys=False))
    if case == "kafka":
        _make_kafka(config)
        return
    if case == "late-labels":
        write_pair(Path(), "jsonl", WHOLE)
    elif case == "several-models":
        write_pair(Path(), "jsonl", WHOLE)
        run(prepare(config), max_records=PROMOTED)
        promote(prepare(config), "challenger")
    elif case in ("growing", "preconditioned"):
        write_stream(Path("stream.csv"), WHOLE)
    else:
        write_numbers(Path("stream.csv"), WHOLE)
    run(prepare(config), max_records=HALF - (PROMOTED if case == "several-models" else 0))
    Path("state/lock").unlink()
    for marker in Path("state").glob("learning*"):
        marker.unlink()


def _make_kafka(config: Path) -> None:
    """Write what a daemon writes, without a broker."""
    plan = prepare(config)
    for number in range(HALF):
        plan.model.learn_one({"a": number % 7, "b": -number % 5}, "pq"[number % 2])
    positions = {partition: Position("cluster/in/n1", partition, 100 + partition) for partition in (0, 1, 2)}
    lines = [Line(b'{"prediction":"p"}', Position("cluster/in/n1", 1, offset)) for offset in (99, 100)]
    marks = {
        "predictions": OutputMark("cluster/predictions/n2", "w1", "golden", 6, 7, lines).to_json(),
        "dead_letters": OutputMark("cluster/dead/n3", "w2", "dead").to_json(),
    }
    account = RecordCounts(consumed=HALF + 43, predicted=HALF, learned=HALF, skipped=40, dead=3)
    start = Start(new_models(plan), account, [7, 90, 301], positions, marks=marks)
    header, payload = take_snapshot(start, plan, make_processor(plan, start))
    store = CheckpointStore(Path("state"))
    with contextlib.closing(store):
        store.lock()
        store.write(header, payload)
    Path("state/lock").unlink()


def main(cases: Sequence[str]) -> None:
    """Make these cases, or all."""
    for case in cases or CASES:
        folder = PLACE / case
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        with contextlib.chdir(folder):
            make(case)


if __name__ == "__main__":
    main(sys.argv[1:])
