"""What a checkpoint tells about a model without the model being loaded."""

from __future__ import annotations

from typing import Any

from streamkernel.daemon.base.mixture import experts_of, important_inputs
from streamkernel.daemon.base.model import Model, count_of, last_step

__all__ = ["describe_model"]


def describe_model(model: Model, digest: str | None) -> dict[str, Any]:
    """Return the class of a model, how far it has grown, the shares of its mixture, and the digest of its state."""
    step = last_step(model)
    about: dict[str, Any] = {"class": f"{type(step).__module__}.{type(step).__qualname__}"}
    for name in ("n_records", "n_features", "n_blocks", "n_grown", "n_reused", "n_refits"):
        if (count := count_of(step, name)) is not None:
            about[name] = count
    mixture = {"expert_weights": experts_of(model), "input_importance": important_inputs(model, exact=True)}
    about |= {name: shares for name, shares in mixture.items() if shares}
    if digest is not None:
        about["state_digest"] = digest
    return about
