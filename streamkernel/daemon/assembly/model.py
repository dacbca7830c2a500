"""Builds the model that a configuration describes: a River pipeline, or its only estimator."""

from __future__ import annotations

import inspect
import re
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from river import base, compose

from streamkernel.connectors.names import hint
from streamkernel.daemon.assembly.names import HOME, NameRefused, full_name, long_form, resolve
from streamkernel.daemon.base.errors import CheckpointError, UnfitError
from streamkernel.daemon.base.model import Model, task_of
from streamkernel.daemon.checkpoints.payload import dump_model, load_model
from streamkernel.daemon.components.several_models import pipelines_of
from streamkernel.daemon.config.plan import Plan
from streamkernel.daemon.config.problems import ConfigError, Problem, dotted, shown

__all__ = ["build_model", "try_model"]

_Path: TypeAlias = tuple[str | int, ...]
# "max_features must be > 0, got -5": an estimator that names its argument first has said which line to look at.
_NAMES_ITS_ARGUMENT = re.compile(r"[`']?(?P<name>\w+)[`']?:? (?P<rest>(?:must|should|has to|cannot) .*)", re.S)


class _Refused(Exception):
    """A step that cannot be built; `_Builder.problems` has the reason."""


class _Builder:
    def __init__(self, imports: Sequence[str]) -> None:
        self._imports = imports
        self.problems: list[Problem] = []

    def refuse(self, path: _Path, reason: str) -> _Refused:
        self.problems.append(Problem(dotted(path), " ".join(reason.split())))
        return _Refused()

    def step(self, path: _Path, written: object) -> base.Base:
        if isinstance(written, str):
            return self.make(path, written, None)
        if isinstance(written, Mapping) and len(written) == 1:
            name, keywords = next(iter(written.items()))
            return self.make(path, name, keywords)
        reason = f"must be dotted.Name or dotted.Name: {{keyword: value}}, got {shown(written)}"
        if isinstance(written, Mapping) and len(written) > 1:
            reason += " (are the keywords indented deeper than the name?)"
        raise self.refuse(path, reason)

    def make(self, path: _Path, name: object, keywords: object) -> base.Base:
        if not isinstance(name, str) or "." not in name:
            full = full_name(name) if isinstance(name, str) else None
            near = "" if full is None else f", did you mean {full!r}?"
            like = "must name a class with its module, like river.compose.Select"
            raise self.refuse(path, f"{like}, got {shown(name)}{near}")
        if keywords is not None and not isinstance(keywords, Mapping):
            raise self.refuse(path, f"the arguments of {name} must be a mapping, got {shown(keywords)}")
        try:
            cls = resolve(name, self._imports)
        except NameRefused as error:
            raise self.refuse(path, str(error)) from None
        values = dict(keywords or {})
        before = len(self.problems)
        positional = self.value((*path, "args"), values.pop("args", []))
        if not isinstance(positional, list):
            self.refuse((*path, "args"), f"must be a list, got {shown(positional)}")
        unknown = self._unknown_keywords(path, cls, name, values)
        made = {}
        for key, value in values.items():
            noted = len(self.problems)
            built = self.value((*path, key), value)
            if len(self.problems) == noted and key not in unknown:
                made[key] = built
        if not isinstance(positional, list):
            raise _Refused
        return self._construct(path, cls, name, positional, made, incomplete=len(self.problems) > before)

    def _construct(
        self,
        path: _Path,
        cls: type[base.Base],
        name: str,
        positional: list[Any],
        made: dict[str, Any],
        incomplete: bool,
    ) -> base.Base:
        """Call the constructor until it names no further wrong argument, each time without the wrong ones.

        An argument that is wrong itself is missing already, if it is incomplete.
        """
        removed: list[str] = []
        while True:
            try:
                inspect.signature(cls).bind(*positional, **made)
                constructed = cls(*positional, **made)
            except Exception as error:  # a constructor raises what it likes about values of the file
                argument, text = _argument_of(error, cls)
                if incomplete and (argument not in made or any(one in text for one in removed)):
                    raise _Refused from None  # it may follow from a missing argument
                if argument is None:
                    raise self.refuse(path, f"{name}: {text}") from None
                refused = self.refuse((*path, argument), text + long_form(made.get(argument)))
                if argument not in made:
                    raise refused from None
                del made[argument]
                removed.append(argument)
                incomplete = True
            else:
                if incomplete:
                    raise _Refused
                return constructed

    def value(self, path: _Path, written: object) -> Any:
        """Build a value; None, with a problem, if it cannot be built: the builder checks the others as well."""
        if isinstance(written, list):
            return [self.value((*path, index), one) for index, one in enumerate(written)]
        if isinstance(written, Mapping):
            if len(written) == 1:
                name, keywords = next(iter(written.items()))
                if isinstance(name, str) and "." in name:
                    try:
                        return self.make(path, name, keywords)
                    except _Refused:
                        return None
            return {key: self.value((*path, str(key)), one) for key, one in written.items()}
        if isinstance(written, str) and (full := _class_named(written)) is not None:
            # River would store the text and fail at the first record.
            self.refuse(path, f"is the name of a class; to make an object of it write {{{full}: {{}}}}")
        return written

    def _unknown_keywords(
        self, path: _Path, cls: type[base.Base], name: str, values: Mapping[str, object]
    ) -> list[str]:
        parameters = inspect.signature(cls).parameters
        if any(one.kind is inspect.Parameter.VAR_KEYWORD for one in parameters.values()):
            return []
        known = [key for key, one in parameters.items() if one.kind is not inspect.Parameter.VAR_POSITIONAL]
        unknown = [key for key in values if key not in known]
        for key in unknown:
            self.refuse((*path, str(key)), f"unknown argument of {name}{hint(str(key), known)}")
        return unknown


def _class_named(text: str) -> str | None:
    """Return the dotted name of the class that a text names, with or without its package; None if there is none."""
    if "." not in text:
        return None
    package, _, rest = text.partition(".")
    return full_name(rest if package in HOME else text)


def _argument_of(error: Exception, cls: type[base.Base]) -> tuple[str | None, str]:
    """Return the argument that the error of a constructor names, and the rest of its message."""
    text = str(error) if isinstance(error, TypeError | ValueError) else f"{type(error).__name__}: {error}"
    named = _NAMES_ITS_ARGUMENT.match(text)
    if named and named["name"] in inspect.signature(cls).parameters:
        return named["name"], named["rest"]
    return None, text


def build_model(steps: Sequence[object], imports: Sequence[str] = (), path: Sequence[str] = ("model",)) -> Model:
    """Return the model of a configuration: the estimator itself if there is one step, else a pipeline.

    Parameters
    ----------
    steps
        The value of ``model:``, top to bottom.
    imports
        The value of ``imports:``.
    path
        The key of the steps.

    Raises
    ------
    ConfigError
        With every mistake.

    Examples
    --------
    >>> build_model([{"river.linear_model.LogisticRegression": {"l2": 0.1}}]).l2
    0.1
    >>> build_model([{"river.linear_model.LogisticRegression": {"los": 0.1}}])  # doctest: +ELLIPSIS
    Traceback (most recent call last):
        ...
    streamkernel.daemon.config.problems.ConfigError: model[0].los: unknown argument of ... did you mean 'loss'?

    """
    builder = _Builder(imports)
    made: list[base.Base] = []
    for index, written in enumerate(steps):
        at: _Path = (*path, index)
        try:
            step = builder.step(at, written)
        except _Refused:
            continue
        last = index == len(steps) - 1
        if isinstance(step, compose.Pipeline) and not step.steps:
            builder.refuse(at, f"a Pipeline without steps: list the steps themselves under {dotted(path)}")
        elif last and (why := _why_no_task(step)):
            kinds = "a classifier, a regressor, streamkernel.KernelNoveltyDetector or streamkernel.KernelDensityRatio"
            builder.refuse(at, f"the last step must be {kinds}, and {why}")
        elif not last and not hasattr(step, "transform_one"):
            builder.refuse(at, f"every step but the last must be a transformer, {type(step).__name__} is none")
        else:
            made.append(step)
    if builder.problems:
        raise ConfigError(*builder.problems)
    if len(made) == 1:
        return made[0]  # type: ignore[return-value]
    try:
        return compose.Pipeline(*made)
    except Exception as error:
        raise ConfigError(Problem(f"{dotted(path)}", f"{error}")) from None


def _why_no_task(step: Any) -> str:
    """Return why the daemon cannot use a model; nothing if it can."""
    try:
        task_of(step)
    except TypeError as error:
        return str(error)
    return ""


def try_model(plan: Plan) -> None:
    """Write each model as a checkpoint would, and read it back, before it has learned anything.

    Raises
    ------
    CheckpointError
        If a model cannot be restored.

    """
    imports = plan.config.imports
    for name, steps in pipelines_of(plan.config).items():
        which = f"models.{name}: the model" if name else "the model"
        try:
            load_model(dump_model(plan.models[name], imports), build_model(steps, imports), imports)
        except UnfitError as error:
            raise CheckpointError(f"{which} cannot be restored from a checkpoint: {error}") from error
