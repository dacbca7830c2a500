"""Several models in a configuration: what cannot be together with them, and what has no meaning without."""

from __future__ import annotations

from collections.abc import Iterator

from streamkernel.connectors.names import hint
from streamkernel.daemon.config.columns import PassingColumnsConfig
from streamkernel.daemon.config.problems import shown
from streamkernel.daemon.config.schema import Config

__all__ = ["conflicts_of_several"]


def conflicts_of_several(config: Config) -> Iterator[str]:
    """Yield a line for each setting about several models that another one rules out."""
    writes_all = isinstance(config.predictions, PassingColumnsConfig) and config.predictions.models == "all"
    if config.models is None:
        if config.publish is not None and config.mode == "learn":
            yield "publish: only with models: it names the one to publish"
        if writes_all:
            yield "predictions.models: all needs models; with one model there are no others"
        return
    if config.model is not None:
        yield "model: not together with models: list it there under its own name"
    if config.publish is not None and config.publish not in config.models:
        names = ", ".join(config.models)
        yield f"publish: must be one of {names}, got {shown(config.publish)}{hint(config.publish, config.models)}"
    if writes_all and config.mode == "predict":
        yield "predictions.models: must be published in mode predict: only the model named by publish predicts"
