"""What every target has in common: cases by their numbers, and what the daemon makes of a configuration."""

import abc
import json
import math
import random
import traceback
import warnings
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import yaml

from streamkernel.daemon.assembly.plan import prepare
from streamkernel.daemon.checkpoints.store import CheckpointStore
from streamkernel.daemon.failure import sentence
from streamkernel.daemon.runtime import run

MODELS: dict[str, list[Any]] = {
    "growing": [{"streamkernel.KernelClassifier": {"seed": 1, "max_features": 64}}],
    "adaptive": [{"streamkernel.AdaptiveKernelClassifier": {"seed": 1, "n_features": 16, "n_trees": 1}}],
    "growing regressor": [{"streamkernel.KernelRegressor": {"seed": 1, "max_features": 64}}],
    "adaptive regressor": [{"streamkernel.AdaptiveKernelRegressor": {"seed": 1, "n_features": 16, "n_trees": 1}}],
    "linear": ["river.preprocessing.StandardScaler", "river.linear_model.LinearRegression"],
    "bayes": ["river.naive_bayes.GaussianNB"],
}


class Target(abc.ABC):
    """Something to fuzz.

    Parameters
    ----------
    folder
        A folder of its own.

    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @abc.abstractmethod
    def case(self, draw: random.Random) -> str | None:
        """Try one thing; give a sentence on what must not be, None where all is well."""

    def warm_up(self) -> None:  # noqa: B027 - most have done so when they are made
        """Import and compile what cases need, which would count as their time."""

    @property
    def resident_mb(self) -> float:
        """The memory of what is fuzzed, where that is another process; 0 where it is this one."""
        return 0.0

    def close(self) -> None:  # noqa: B027 - most have nothing to end
        """End what was started."""


def configured(path: Path, **sections: Any) -> Path:
    """Write a configuration that serves no metrics, with outputs beside it."""
    folder = path.parent
    settings = {
        "predictions": {"kind": "jsonl", "path": str(folder / "predictions.jsonl")},
        "dead_letters": {"kind": "jsonl", "path": str(folder / "dead.jsonl"), "max_rate": 1.0},
        "checkpoint": {"directory": str(folder / "state"), "every_records": 50},
        "metrics": None,
        **sections,
    }
    path.write_text(yaml.safe_dump(settings, sort_keys=False))
    return path


def ran_once(folder: Path, model: str) -> None:
    """Run a model of `MODELS` over some sound records."""
    folder.mkdir(parents=True, exist_ok=True)
    lines = [json.dumps({"a": n % 7, "b": "red", "y": n % 2}) for n in range(250)]
    (folder / "stream.jsonl").write_text("\n".join(lines))
    source = {"kind": "jsonl", "path": str(folder / "stream.jsonl"), "target": "y"}
    source["target_type"] = "float" if takes_numbers(model) else "str"
    failed = ran(configured(folder / "config.yaml", source=source, model=MODELS[model]))
    if failed is not None:
        raise RuntimeError(failed)


def takes_numbers(model: str) -> bool:
    """Whether a model of `MODELS` is a regressor."""
    return "regressor" in model or model == "linear"


def ran(config: Path) -> str | None:
    """Run the daemon to its end: what it raises must be an error it knows, with a sentence for the user."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            run(prepare(config))
        except Exception as error:
            return unexpected(error)
    return None


def unexpected(error: Exception) -> str | None:
    """A sentence where an error is not one the daemon knows."""
    text = sentence(error)
    if not text.startswith("unexpected "):
        return None
    last = traceback.extract_tb(error.__traceback__)[-1]
    return f"{text[:300]} ({Path(last.filename).name}:{last.lineno})"


def unsound(folder: Path) -> str | None:
    """A sentence where what a run left behind does not add up, or holds what is no finite number."""
    checkpoint = CheckpointStore(folder / "state").newest()
    if checkpoint is None:
        return "there is no checkpoint that can be read"
    account = checkpoint.header["source"]["account"]
    settled = sum(account[name] for name in ("learned", "unlabeled", "skipped", "dead"))
    if settled != account["consumed"]:
        return f"the account does not add up: {account}"
    lines = (folder / "predictions.jsonl").read_text().splitlines()
    if len(lines) != account["predicted"]:
        return f"{len(lines)} predictions were written, and {account['predicted']} counted"
    for line in map(json.loads, lines):
        if not all(map(math.isfinite, _numbers([line["prediction"], line.get("probabilities"), line.get("std")]))):
            return f"a prediction is no finite number: {line}"[:300]
    return None


def _numbers(value: Any) -> Iterable[float]:
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list):
        for one in value:
            yield from _numbers(one)
    elif isinstance(value, float):
        yield value
