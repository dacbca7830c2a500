"""What the daemon shows of itself: one picture for the progress bar, the status page, the table and the gauges."""

from __future__ import annotations

import html
import itertools
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from streamkernel.daemon.base.model import Model, last_step

__all__ = ["View", "grows", "growth_of", "status_page"]

# The page is to be read at a glance; the metrics have more of them.
_INPUTS_SHOWN = 5
_GROWTH = {"features": "n_features", "blocks": "n_blocks", "grown": "n_grown", "reused": "n_reused"}


@dataclass(frozen=True)
class View:
    """The daemon at one moment.

    Attributes
    ----------
    account
        The counts of `RecordCounts`, since the first start.
    taken
        Records this process consumed.
    seconds
        Since this process took its first record.
    offset
        Where the source goes on.
    loss, loss_sum
        The progressive loss and the sum of all losses of this process.
    overall, rolling
        The report metrics of this process, over all its records and over the last ones.
    growth
        Features, blocks, grown and reused, where the model has them.
    experts, inputs
        The weights of its experts and the shares of its most important inputs, where the model has them.
    labels
        The counts of `LabelCounts`, and how many records and labels wait; empty where there are no late labels.
    checkpoint
        A phrase on the last checkpoint.

    """

    account: Mapping[str, int] = field(default_factory=dict)
    taken: int = 0
    seconds: float = 0.0
    offset: int = 0
    loss: float = math.nan
    loss_sum: float = 0.0
    overall: Mapping[str, float] = field(default_factory=dict)
    rolling: Mapping[str, float] = field(default_factory=dict)
    growth: Mapping[str, int] = field(default_factory=dict)
    experts: Mapping[str, float] = field(default_factory=dict)
    inputs: Mapping[str, float] = field(default_factory=dict)
    labels: Mapping[str, int] = field(default_factory=dict)
    checkpoint: str = "off"

    @property
    def rate(self) -> float:
        """Records a second of this process."""
        return self.taken / self.seconds if self.seconds > 0 else 0.0

    def to_json(self) -> dict[str, Any]:
        """Give everything by name."""
        return {
            "account": dict(self.account),
            "records": self.taken,
            "seconds": self.seconds,
            "records_per_second": self.rate,
            "metrics": dict(self.overall),
            "rolling": dict(self.rolling),
            "progressive_loss": self.loss,
            **({"labels": dict(self.labels)} if self.labels else {}),
            **self.growth,
            **({"expert_weights": dict(self.experts)} if self.experts else {}),
            **({"input_importance": dict(self.inputs)} if self.inputs else {}),
        }


def grows(model: Model) -> bool:
    """Say whether a model, or the last step of a pipeline, is a kernel machine that grows."""
    step = last_step(model)
    return all(hasattr(step, attribute) for attribute in _GROWTH.values())


def growth_of(model: Model) -> dict[str, int]:
    """Read how far a model has grown; empty for models that do not."""
    if not grows(model):
        return {}
    step = last_step(model)
    return {name: int(getattr(step, attribute)) for name, attribute in _GROWTH.items()}


def status_page(title: str, source: str, view: View) -> str:
    """Make the page a person sees at ``/``.

    Parameters
    ----------
    title
        The configuration file.
    source
        What is read.
    view
        The latest picture.

    """
    rows = [
        ("source", source),
        ("position", f"{view.offset:,}"),
        ("records/s of this process", f"{view.rate:,.0f}"),
        *((name, f"{count:,}") for name, count in view.account.items()),
        *((f"labels: {name}", f"{count:,}") for name, count in view.labels.items()),
        ("progressive loss", f"{view.loss:.6g}"),
        *((f"rolling {name}", f"{value:.6g}") for name, value in view.rolling.items()),
        *((name, f"{count:,}") for name, count in view.growth.items()),
        *((f"expert: {name}", f"{weight:.1%}") for name, weight in view.experts.items()),
        *((f"input: {name}", f"{share:.1%}") for name, share in itertools.islice(view.inputs.items(), _INPUTS_SHOWN)),
        ("last checkpoint", view.checkpoint),
    ]
    cells = "\n".join(f"<tr><th>{html.escape(name)}</th><td>{html.escape(value)}</td></tr>" for name, value in rows)
    return f"""<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><meta http-equiv="refresh" content="5"><title>streamkernel</title>
<style>body{{font:16px/1.5 system-ui,sans-serif;margin:2em}}th{{text-align:left;font-weight:normal;padding-right:2em}}
td{{text-align:right;font-variant-numeric:tabular-nums}}</style></head>
<body><h1>streamkernel {html.escape(title)}</h1>
<table>
{cells}
</table>
<p><a href="/metrics">metrics</a> <a href="/healthz">healthz</a> <a href="/readyz">readyz</a></p></body></html>
"""
