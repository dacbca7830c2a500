"""Where the models of a checkpoint and a configuration differ: in classes and arguments, by their paths."""

from typing import Any

from streamkernel.daemon.base.errors import OtherModelError

#: Arguments of the growing estimators whose None is no value, but leaves them to the state.
LEFT_OPEN = frozenset({"block_size", "precondition", "blocks_per_step"})


def refuse_difference(before: dict[str, Any], now: dict[str, Any], place: str = "model") -> None:
    """Refuse a checkpoint of another model than the configuration's, both as `payload.structure` describes them.

    What a configuration leaves open is what the checkpoint's model was learned with. The place of the model in the
    configuration begins each path.

    Raises
    ------
    OtherModelError
        With each difference.

    """
    left = {path for path, value in now.items() if value is None and _ours(path, now) in LEFT_OPEN}
    before = {path: None if path in left else value for path, value in before.items()}
    if found := differences(before, now, place):
        raise OtherModelError(found)


def differences(before: dict[str, Any], now: dict[str, Any], place: str = "model") -> list[str]:
    """Return where the model structures of a checkpoint and a configuration differ, a phrase for each path.

    Below a path that differs, as where there is another class, nothing more is compared.

    Examples
    --------
    >>> differences({"model[0].max_features": 512}, {"model[0].max_features": 1024})
    ['model[0].max_features: checkpoint has 512, configuration says 1024']
    >>> differences({"model[0].l2": 0.1}, {}, "models.old")
    ['models.old[0].l2: checkpoint has 0.1, not in the configuration']

    """
    found: dict[str, str] = {}
    for path in [*now, *(path for path in before if path not in now)]:
        if any(path.startswith((f"{above}.", f"{above}[")) for above in found):
            continue
        shown = place + path.removeprefix("model")
        if path not in before:
            found[path] = f"{shown}: not in the checkpoint, configuration says {now[path]!s:.200}"
        elif path not in now:
            found[path] = f"{shown}: checkpoint has {before[path]!s:.200}, not in the configuration"
        # The text as well: NaN differs from itself.
        elif before[path] != now[path] and str(before[path]) != str(now[path]):
            found[path] = f"{shown}: checkpoint has {before[path]!s:.200}, configuration says {now[path]!s:.200}"
    return list(found.values())


def _ours(path: str, now: dict[str, Any]) -> str:
    """The name of an argument of an estimator of ours, and "" of any other."""
    component, _, name = path.rpartition(".")
    return name if str(now.get(component)).startswith("streamkernel.estimators.") else ""
