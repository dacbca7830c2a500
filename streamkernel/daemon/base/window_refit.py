"""The model that is refitted on its last records, where a model is one."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from streamkernel.daemon.base.model import Model, is_a, last_step

if TYPE_CHECKING:
    from streamkernel.estimators.window_refit import WindowRefit
    from streamkernel.window.refit import LastRefit

__all__ = ["refit_sentence", "title_of", "window_refit_of"]


def window_refit_of(model: Model) -> WindowRefit | None:
    """Return a model, or the last step of a pipeline, where it is a `WindowRefit`; None where it is another one."""
    step = last_step(model)
    return cast("WindowRefit", step) if is_a(step, "WindowRefit") else None


def title_of(model: Model) -> str:
    """Return the class of a model, and of a `WindowRefit` also what it refits and when.

    Examples
    --------
    >>> import streamkernel as sk
    >>> title_of(sk.WindowRefit(sk.KernelClassifier(seed=1), window=600, every=400))
    'WindowRefit of KernelClassifier, every 400 records on the last 600'

    """
    refit = window_refit_of(model)
    if refit is None:
        return type(model).__name__
    return f"WindowRefit of {type(refit.model).__name__}, every {refit.every:,} records on the last {refit.window:,}"


def refit_sentence(last: LastRefit | None, name: str = "") -> str:
    """Return what the log says of a refit of a model, by its name where it has one; None: there was nothing to solve.

    Examples
    --------
    >>> refit_sentence(None, "champion")
    'the model champion was not refitted: its window has nothing to solve'

    """
    which = f"the model {name}" if name else "the model"
    if last is None:
        return f"{which} was not refitted: its window has nothing to solve"
    found = f"in {last.seconds:.1f} s, and has a mean loss of {last.loss:.4g} on them"
    return f"{which} was refitted on its last {last.n_records:,} records {found}"
