"""The header of a checkpoint: which run wrote it, and whether a configuration may continue from it."""

from __future__ import annotations

import contextlib
import hashlib
import json
import logging
import platform
import time
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from importlib import metadata
from typing import Any

from pydantic import ValidationError

from streamkernel.connectors.ports import Mark, Position
from streamkernel.daemon.base.errors import UnfitError
from streamkernel.daemon.config.inputs import InputsConfig
from streamkernel.daemon.config.plan import Plan
from streamkernel.daemon.config.problems import shown
from streamkernel.daemon.config.schema import SourceConfig
from streamkernel.daemon.recovery.description import describe_model
from streamkernel.daemon.recovery.stored import DumpedModels
from streamkernel.daemon.stream.processor import Processor

__all__ = [
    "PREDICTED_WITH",
    "check_versions",
    "header",
    "input_differences",
    "label_differences",
    "mark_of",
    "source_differences",
    "versions",
    "warm_differences",
]

_log = logging.getLogger(__name__)

_LIBRARIES = ("streamkernel", "river", "numpy")
# What of a source decides which records the model sees. Not its path: a file is known by its first bytes, and may move.
_SOURCE_KEYS = (
    *("kind", "target", "target_type", "delimiter", "encoding", "multiline", "dataset", "args"),
    # Neither the brokers, which may move, nor the partitions: each of them has a position of its own.
    *("topic", "include"),
)
# What else of a source a checkpoint tells those who read it, where it is set: how its columns and messages are read.
_TOLD_KEYS = ("inputs", "value_format")
# What of an output says where it goes. Which cluster a topic is on, and whether it is the same one, is in the mark.
_OUTPUT_KEYS = ("kind", "path", "topic")


PREDICTED_WITH = "predicted_with"
"""The key of a header, of a run in mode predict alone: which checkpoint of another directory gave its model."""


# A version is read from files, which takes as long as all the rest of a header.
_version = cache(metadata.version)


def mark_of(outputs: Mapping[str, Mapping[str, Any]], key: str, written: Mapping[str, Any]) -> Mark | None:
    """Find the mark of an output in a checkpoint.

    Parameters
    ----------
    outputs
        What the checkpoint says about each output, by its key.
    key
        That of the output.
    written
        The section of the output, as the configuration has it: an output that goes elsewhere has no mark.

    """
    before = outputs.get(key, {})
    same = all(before.get(name) == written.get(name) for name in _OUTPUT_KEYS)
    return before.get("mark") if same else None


def _fitted_sections(plan: Plan) -> dict[str, Any]:
    """Return what of the configuration the state depends on, as the file has it: variables unreplaced.

    Whether the model fits is seen from the model itself, when it is restored: there, defaults are filled in.
    """
    sections = {**_fitted_models(plan), "source": _fitted_source(plan.raw["source"], plan.config.source)}
    labels = plan.config.labels
    if labels is not None:
        written = plan.raw["labels"]
        sections["labels"] = {"key": written["key"], "source": _fitted_source(written["source"], labels.source)}
    if plan.config.warm_start is not None:
        warm = plan.config.warm_start.source
        sections["warm_start"] = _fitted_source(plan.raw["warm_start"]["source"], warm)
    # As a checkpoint has them: YAML knows dates and numbers that are not finite, and JSON has words for them.
    plain: dict[str, Any] = json.loads(json.dumps(sections, default=str), parse_constant=str)
    return plain


def _fitted_models(plan: Plan) -> dict[str, Any]:
    if not plan.models:
        return {"model": [_step(step) for step in plan.raw["model"]]}
    publish = plan.raw.get("publish")
    return {
        "models": {name: [_step(step) for step in steps] for name, steps in plan.raw["models"].items()},
        **({} if publish is None else {"publish": plan.config.publish}),
    }


def _fitted_source(written: Mapping[str, Any], source: SourceConfig) -> dict[str, Any]:
    fitted = {key: written.get(key, getattr(source, key)) for key in _SOURCE_KEYS if hasattr(source, key)}
    if "include" in fitted:
        fitted["include"] = sorted(fitted["include"])
    return fitted | {key: written[key] for key in _TOLD_KEYS if written.get(key) is not None}


def _step(step: Any) -> Any:
    """Write `name` and `name: null` as `name: {}`: they mean the same."""
    if isinstance(step, str):
        return {step: {}}
    return {name: keywords or {} for name, keywords in step.items()}


def header(
    plan: Plan,
    processor: Processor,
    positions: Mapping[int, Position],
    marks: Mapping[str, Mark | None],
    models: DumpedModels,
    labels: Mapping[str, Any] | None = None,
    predicted_with: Mapping[str, int] | None = None,
    replayed: Sequence[Any] = (),
    promotions: Sequence[Any] = (),
    warm_start: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Return the header of a checkpoint.

    Parameters
    ----------
    plan
        The configuration.
    processor
        The model, the counts and the latest dead letters.
    positions
        Where each partition continues.
    marks
        The mark of each output, by its key.
    models
        The models as the payload has them.
    labels
        What `labels.snapshot.dump` gives for the header; None where there are no late labels.
    predicted_with
        Number and learned records of the checkpoint from which a run in mode predict has its model; None: it learns.
    replayed
        What `ReplayedLetters.to_json` gives; nothing where no dead letter was replayed.
    promotions
        The promotions since the first start; nothing where there were none.
    warm_start
        What `WarmStart.to_json` gives; None where the run did not begin with one.

    """
    sections = _fitted_sections(plan)
    text = json.dumps(sections, sort_keys=True)
    several = models.entries is not None
    inputs, moments = processor.learner.input_names, processor.learner.target_moments
    return {
        "written": time.time(),
        "mode": plan.config.mode,
        "account": processor.counts.to_json(),
        "recent_dead": processor.rate.recent,
        "positions": [position.to_json() for position in positions.values()],
        "outputs": {key: {**_output(plan.raw[key]), "mark": mark} for key, mark in marks.items() if plan.raw.get(key)},
        **({} if labels is None else {"labels": labels}),
        **({"inputs": inputs} if inputs and not several else {}),
        **({"target_moments": list(moments)} if moments.n and not several else {}),
        **({"models": models.entries, "published": processor.name} if several else {}),
        **({"promotions": promotions} if promotions else {}),
        **({} if predicted_with is None else {PREDICTED_WITH: dict(predicted_with)}),
        **({"replayed": replayed} if replayed else {}),
        **({} if warm_start is None else {"warm_start": warm_start}),
        "config": sections,
        "config_hash": hashlib.sha256(text.encode()).hexdigest(),
        "model": describe_model(processor.learner.model, models.digest),
        "versions": versions(),
    }


def _output(written: Mapping[str, Any]) -> dict[str, Any]:
    return {name: written[name] for name in _OUTPUT_KEYS if name in written}


def versions() -> dict[str, str]:
    """Return the versions of what writes a checkpoint, by name."""
    return {**{name: _version(name) for name in _LIBRARIES}, "python": platform.python_version()}


def source_differences(header: Mapping[str, Any], plan: Plan) -> list[str]:
    """Return a phrase for each way in which the source of a checkpoint would hand out other records."""
    before, now = header["config"]["source"], _fitted_sections(plan)["source"]
    return _differences("source", before, now, _SOURCE_KEYS)


def input_differences(header: Mapping[str, Any], plan: Plan) -> list[str]:
    """Return a phrase for each way in which a source would hand out other inputs than at a checkpoint."""
    before, now = header["config"]["source"].get("inputs"), _fitted_sections(plan)["source"].get("inputs")
    with contextlib.suppress(ValidationError):  # a variable, which is as it is written here
        before, now = (InputsConfig.model_validate(one or {}).model_dump() for one in (before, now))
    return _differences("source.inputs", before or {}, now or {}, InputsConfig.model_fields)


def label_differences(header: Mapping[str, Any], plan: Plan) -> list[str]:
    """Return a phrase for each reason why records of a checkpoint would wait for labels that do not come."""
    before, now = header["config"]["labels"], _fitted_sections(plan).get("labels")
    if now is None:
        return ["labels is set in the checkpoint and not in the configuration"]
    different = _differences("labels", before, now, ["key"])
    return different + _differences("labels.source", before["source"], now["source"], _SOURCE_KEYS)


def warm_differences(header: Mapping[str, Any], plan: Plan) -> list[str]:
    """Return a phrase for each reason why the warm start of a checkpoint, if it is half learned, would not continue."""
    if header.get("warm_start", {"done": True})["done"]:
        return []
    before, now = header["config"].get("warm_start") or {}, _fitted_sections(plan).get("warm_start")
    if now is None:
        return ["warm_start is half learned in the checkpoint and not set in the configuration"]
    return _differences("warm_start.source", before, now, _SOURCE_KEYS)


def _differences(name: str, before: Mapping[str, Any], now: Mapping[str, Any], keys: Iterable[str]) -> list[str]:
    return [
        f"{name}.{key} is {shown(before.get(key))} in the checkpoint and {shown(now.get(key))} in the configuration"
        for key in keys
        if before.get(key) != now.get(key)
    ]


def check_versions(header: Mapping[str, Any], otherwise: str = "start over with --fresh") -> None:
    """Refuse a checkpoint of another major version, warn of one of another minor version.

    Parameters
    ----------
    header
        That of the checkpoint.
    otherwise
        What to do where the other version is not to be installed.

    Raises
    ------
    UnfitError
        Naming both versions.

    """
    for name in ("streamkernel", "river"):
        before, now = str(header["versions"][name]), _version(name)
        if before.split(".")[0] != now.split(".")[0]:
            raise UnfitError(
                f"the checkpoint was written with {name} {before}, this is {name} {now}: "
                f"install {name} {before}, or {otherwise}"
            )
        if before.split(".")[1:2] != now.split(".")[1:2]:
            _log.warning("the checkpoint was written with %s %s, this is %s %s", name, before, name, now)
