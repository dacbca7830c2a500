"""What a configuration may not say beside several targets."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from streamkernel.daemon.config.problems import shown
from streamkernel.daemon.config.schema import Config

__all__ = ["conflicts_of_targets", "is_list"]


def conflicts_of_targets(config: Config) -> Iterator[str]:
    """Yield a line for each setting that several targets rule out."""
    for key, source in config.sources.items():
        if key == "labels.source" and is_list(source):
            yield f"{key}.target: must be one field, late labels bring one target, got {shown(source.target)}"  # type: ignore[union-attr]
    if not is_list(config.source):
        return
    if config.labels is not None:
        yield "labels: not with several targets in source.target: leave one of the two out"
    if config.serve is not None:
        yield "serve: not with several targets in source.target: leave serve out"
    warm = config.warm_start
    if warm is not None and getattr(warm.source, "target", None) != config.source.target:  # type: ignore[union-attr]
        yield "warm_start.source.target: must name the same targets as source.target, in the same order"
    output: Any = config.predictions
    if getattr(output, "kind", "") == "parquet" or getattr(output, "value_format", "json") != "json":
        yield "predictions: this output has one column for the prediction, not several: use jsonl, csv or json"
    if getattr(output, "classes", ()):
        yield "predictions.classes: not with several targets, whose labels are true and false: leave it out"


def is_list(source: Any) -> bool:
    """Return whether a source names several targets, if only one in a list."""
    return isinstance(getattr(source, "target", None), list)
