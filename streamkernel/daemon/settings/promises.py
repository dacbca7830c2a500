"""What a configuration gives up, said before the first record and by `check`."""

from __future__ import annotations

from collections.abc import Mapping

from connectors.ports import Sink
from streamkernel.daemon.settings.config import CsvSource, JsonlSource
from streamkernel.daemon.settings.plan import Plan

__all__ = ["caveats"]


def caveats(plan: Plan, sinks: Mapping[str, Sink]) -> list[str]:
    """Name what this configuration does not promise.

    Parameters
    ----------
    plan
        The configuration.
    sinks
        Its sinks, by their key.

    Returns
    -------
    lines
        One sentence each; empty where nothing is given up.

    """
    config, source = plan.config, plan.source
    lines = []
    if isinstance(config.source, CsvSource | JsonlSource) and config.source.target is None and config.mode == "learn":
        lines.append("source.target is not set: no record has a label, nothing will be learnt")
    if config.predictions is None or config.predictions.kind == "none":
        lines.append("predictions are off: what the model says is not written anywhere")
    if config.dead_letters is None or config.dead_letters.kind == "none":
        lines.append("dead_letters are off: records that cannot be used are counted and thrown away")
    if config.checkpoint is None:
        lines.append("checkpoint is off: nothing is saved, a restart learns from the first record again")
    elif not source.resumable:
        lines.append(
            f"{source.describe()} cannot be resumed: a restart keeps the model, but may miss or repeat records"
        )
    for key, sink in sinks.items():
        if not sink.exactly_once:
            lines.append(f"{key} cannot be cut back: after a restart some of its lines may stand there twice")
    if config.imports:
        lines.append(f"imports trusts all code of {', '.join(config.imports)}, in the configuration and in checkpoints")
    return lines
