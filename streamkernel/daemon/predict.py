"""Predictions for one file from a checkpoint, without a configuration: what `streamkernel predict MODEL FILE` does."""

from __future__ import annotations

import contextlib
import copy
import math
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path, PurePath
from typing import Any, TypeVar

import yaml

from streamkernel.connectors.files.bytes import SUFFIXES
from streamkernel.connectors.names import hint, nfc
from streamkernel.connectors.ports import SinkError, Source
from streamkernel.daemon.assembly.connectors import make_sink
from streamkernel.daemon.assembly.model import build_model
from streamkernel.daemon.assembly.names import HOME
from streamkernel.daemon.assembly.plan import plan_of
from streamkernel.daemon.assembly.processor import compared, make_processor
from streamkernel.daemon.base.errors import CheckpointError, DaemonError, UnfitError
from streamkernel.daemon.base.model import Model, Task, task_of
from streamkernel.daemon.checkpoints.file import Checkpoint
from streamkernel.daemon.checkpoints.reader import CheckpointReader
from streamkernel.daemon.config.document import document_of
from streamkernel.daemon.config.fields import Section
from streamkernel.daemon.config.plan import Plan
from streamkernel.daemon.config.problems import ConfigError, Problem
from streamkernel.daemon.config.schema import CsvSourceConfig, JsonlSourceConfig
from streamkernel.daemon.monitoring.dead_letters import DeadLetterPrinter
from streamkernel.daemon.run_state.header import open_checkpoint
from streamkernel.daemon.run_state.run_models import RunModels, StoredModels
from streamkernel.daemon.run_state.start import Start
from streamkernel.daemon.run_state.trained import TrainedModel, load_trained
from streamkernel.daemon.stream.ending import TooManyDeadLettersError
from streamkernel.daemon.stream.loop import Checkpoints, Loop, Observer
from streamkernel.daemon.stream.record_batch import RecordBatch
from streamkernel.daemon.stream.sinks import Sinks
from streamkernel.daemon.stream.stop import StopSignals
from streamkernel.daemon.stream.waiting_sink import WaitingSink

__all__ = ["PredictRequest", "as_in_yaml", "load_described", "predict"]

_SECTIONS: Mapping[str, type[Section]] = {"csv": CsvSourceConfig, "jsonl": JsonlSourceConfig}
_KINDS = {".csv": "csv", ".tsv": "csv", ".jsonl": "jsonl", ".ndjson": "jsonl", ".json": "jsonl"}
_ADVICE = {
    "csv_width": "try another --delimiter, or --multiline",
    "open_quote": "try --multiline",
    "encoding": "try another --encoding",
    "not_json": "try --input-format csv",
    "not_an_object": "try --input-format csv",
    "target": "try another --target-type",
}
_FLUSH_SECONDS = 0.2
# The header is JSON, and a configuration is YAML: words of the header for keys and numbers of YAML.
_KEYS: Mapping[str, bool | None] = {"true": True, "false": False, "null": None}
_NUMBERS = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}

T = TypeVar("T")


@dataclass(frozen=True)
class PredictRequest:
    """What to predict, and with which model.

    Attributes
    ----------
    model
        A checkpoint file or directory.
    file
        A CSV or JSON-lines file; ``"-"`` is standard input.
    kind
        ``"csv"`` or ``"jsonl"``; None: what the file's name says, else what the model was learned from.
    output
        ``"jsonl"`` or ``"csv"``.
    options
        Keys of the source's section, such as ``target``, in the place of those that the checkpoint was written with.
    imports
        Packages whose classes the model may have in addition to River's and ours.
    include
        Columns of the file that pass through to its lines, each a name or ``{column: NAME, name: ANOTHER}``.
    name
        Which of several models; empty: the published one.

    """

    model: Path
    file: str
    kind: str | None = None
    output: str = "jsonl"
    options: Mapping[str, Any] = field(default_factory=dict)
    imports: Sequence[str] = ()
    include: Sequence[str] = ()
    name: str = ""


def predict(request: PredictRequest, stopped: StopSignals) -> None:
    """Predict the records of a file, and write a line for each of them to standard output.

    Unusable records are reported on standard error: the first ones each, and all as counts.

    Parameters
    ----------
    request
        What to predict.
    stopped
        Whether to stop early.

    Raises
    ------
    ConfigError
        Where an option cannot be.
    CheckpointError
        Where there is no model, or it cannot be used.
    ConnectorError
        Where the file cannot be read, or standard output not be written.
    BrokenPipeError
        Where nobody reads standard output any more.
    DaemonError
        Where more than half of the records cannot be used, or the model has learned none of their inputs.

    """
    if request.model.suffix in (".yaml", ".yml"):
        raise ConfigError(
            Problem("MODEL", f"{request.model} is a configuration: name its checkpoint.directory, or a file in there")
        )
    if os.path.isdir(request.file):
        raise ConfigError(
            Problem("FILE", f"{request.file} is a directory: give a pattern such as '{request.file}/*.csv'")
        )
    plan, trained = CheckpointReader(request.model, partial(_prepare, request)).newest()
    models = RunModels({"": trained.restored}, name=trained.name, checkpoint=trained.checkpoint)
    start = Start(models, trained=trained)
    processor = make_processor(plan, start)
    assert plan.config.predictions is not None
    standard = make_sink(plan.config.predictions, "predictions")
    letters = DeadLetterPrinter(request.file, plan.source)
    sinks = Sinks({"predictions": WaitingSink(standard, stopped), "dead_letters": letters})
    loop = Loop(
        compared(
            plan,
            plan.source,
            processor,
            start=start,
            place=request.file,
            advice="rename the columns, or try another --delimiter or --input-format",
        ),
        processor,
        sinks,
        {},
        _Flushing(sinks),
        Checkpoints(),
        stopped=stopped,
    )
    with plan.source:
        plan.source.open()
        _check_target(request, plan.source)
        try:
            standard.open()
            _run(loop, sinks)
        except SinkError as error:
            if isinstance(error.__context__, BrokenPipeError):
                raise error.__context__ from None
            raise
        finally:
            letters.summarize(processor.counts.consumed)
    if 2 * processor.counts.dead > processor.counts.consumed:
        raise DaemonError(f"{request.file}: more than half of its records cannot be used{_advice(letters.reasons)}")


def _check_target(request: PredictRequest, source: Source) -> None:
    """Refuse a column of labels that was asked for and is not in the header."""
    target, columns = nfc(request.options.get("target") or ""), list(getattr(source, "column_names", None) or ())
    if target and columns and target not in columns:
        listed = ", ".join(map(repr, columns))
        near = hint(target, columns)
        raise ConfigError(Problem("--target", f"{request.file} has no column {target!r}, it has {listed:.200}{near}"))


def _run(loop: Loop, sinks: Sinks) -> None:
    """Run the loop, and write all there is, also of a source that fails."""
    try:
        with contextlib.suppress(TooManyDeadLettersError):
            loop.run()
    finally:
        sinks.flush()


class _Flushing(Observer):
    """Writes lines some times a second: a reader may wait for each."""

    def __init__(self, sinks: Sinks) -> None:
        self._sinks = sinks
        self._flushed = time.monotonic()
        self._written = False

    def chunk(self, done: RecordBatch) -> None:
        self._written |= bool(done.predicted)

    def turn(self) -> None:
        if self._written and time.monotonic() - self._flushed >= _FLUSH_SECONDS:
            self._sinks.flush()
            self._flushed, self._written = time.monotonic(), False


def _prepare(request: PredictRequest, checkpoint: Checkpoint) -> tuple[Plan, TrainedModel]:
    """Make the plan and the model of a checkpoint; raises `CheckpointError` where it cannot be used."""
    saved = open_checkpoint(checkpoint)
    _, stored = StoredModels(saved).named(request.name)
    name, imports = request.name, request.imports
    trained = load_described(stored.steps, imports, lambda model: load_trained(checkpoint, model, imports, name))
    return _plan(request, saved.header, stored.steps, trained), trained


def load_described(steps: Any, imports: Sequence[str], load: Callable[[Model], T]) -> T:
    """Build the model that a checkpoint describes, and load the checkpoint into it.

    Parameters
    ----------
    steps
        The steps of the model as the header has them.
    imports
        Packages that the model may name in addition to ``river`` and ``streamkernel``.
    load
        Loads the checkpoint into a new model; raises `UnfitError` if the checkpoint holds another one.

    Raises
    ------
    UnfitError
        If it cannot be built here: a package is not listed or not installed, or a variable is not set.
    CheckpointError
        If the header has no model.

    """
    if not isinstance(steps, list):
        raise CheckpointError("its header cannot be used: models: steps: must be a list of steps")
    try:
        return load(_built(steps, imports))
    except UnfitError:
        if (meant := as_in_yaml(steps)) == steps:
            raise
        return load(_built(meant, imports))
    except RecursionError:
        raise CheckpointError("its header cannot be used: models: steps: nested too deeply") from None


def as_in_yaml(value: Any) -> Any:
    """Return arguments as YAML had them: JSON has words for keys that are not text, for infinities and NaN.

    Examples
    --------
    >>> as_in_yaml([{"river.linear_model.ALMAClassifier": {"B": "Infinity"}}])
    [{'river.linear_model.ALMAClassifier': {'B': inf}}]

    """
    if isinstance(value, dict):
        return {_KEYS.get(key, key): as_in_yaml(one) for key, one in value.items()}
    if isinstance(value, list):
        return [as_in_yaml(one) for one in value]
    return _NUMBERS.get(value, value) if isinstance(value, str) else value


def _built(steps: Sequence[Any], imports: Sequence[str]) -> Model:
    """Build a model as a configuration describes it."""
    try:
        document = document_of({"model": steps})
    except ConfigError as error:
        raise UnfitError("; ".join(error.lines)) from None
    try:
        if document.problems:
            raise ConfigError(*document.problems)
        return build_model(document.values["model"], imports)
    except ConfigError as error:
        lines = "; ".join(str(document.as_written(problem)) for problem in error.problems)
        unlisted = set(_packages(steps)).difference(HOME, imports)
        advice = " (--imports PACKAGE)" if unlisted else ""
        raise UnfitError(f"the model cannot be built as its configuration describes it: {lines}{advice}") from None


def _packages(written: Any) -> Iterator[str]:
    """Yield the packages of the classes that steps name."""
    if isinstance(written, str) and "." in written:
        yield written.partition(".")[0]
    elif isinstance(written, Mapping):
        for key, value in written.items():
            yield from _packages(key)
            yield from _packages(value if isinstance(value, list | Mapping) else None)
    elif isinstance(written, list):
        for one in written:
            yield from _packages(one)


def _plan(request: PredictRequest, header: Mapping[str, Any], steps: Any, trained: TrainedModel) -> Plan:
    """Make the plan of a run over the file, read as what the model was learned from as far as nothing else is said."""
    tree = {
        "source": {**_source(request, header, task_of(trained.model)), "path": "-"},
        "model": steps,
        "mode": "predict",
        "serve_from": "-",
        "predictions": {"kind": request.output, "path": "-", "include": []},
        "metrics": None,
        "imports": [*request.imports],
    }
    included = [_included(one) for one in request.include]
    if trained.name and "model" in (
        one if isinstance(one, str) else one.get("name", one["column"]) for one in included
    ):
        raise ConfigError(Problem("--include", "each line has model already: write '{column: model, name: ANOTHER}'"))
    # Variables are replaced as in a configuration, but not in the names of files.
    document = document_of(copy.deepcopy(tree))
    for written in (document.raw, document.values):
        written["source"]["path"], written["serve_from"] = request.file, str(request.model)
        written["predictions"]["include"] = included
        written["model"] = as_in_yaml(written["model"])
    try:
        return plan_of(request.model, document)
    except ConfigError as error:
        raise ConfigError(*map(_of_option, error.problems)) from None


def _source(request: PredictRequest, header: Mapping[str, Any], task: Task) -> dict[str, Any]:
    """Return the section of the source without its path."""
    learned = dict(header["source"]["config"])
    if learned.get("target") is None and header.get("labels"):
        late = header["labels"]["config"]["source"]  # a label in the file is not an input
        learned |= {key: late[key] for key in ("target", "target_type") if key in late}
    suffixes = [suffix.lower() for suffix in PurePath(request.file).suffixes if suffix not in SUFFIXES]
    suffix = suffixes[-1] if suffixes else ""
    kind = request.kind or _KINDS.get(suffix) or learned["kind"]
    if kind not in _SECTIONS:
        raise ConfigError(
            Problem(
                "--input-format",
                f"required, csv or jsonl: neither the name {request.file} nor the checkpoint says which",
            )
        )
    if suffix == ".tsv":
        learned["delimiter"] = "\t"
    known = _SECTIONS[kind].model_fields.keys()
    wrong = [key for key in request.options if key not in known]
    if wrong:
        raise ConfigError(*(Problem(_option(key), f"does not apply to {kind}") for key in wrong))
    section = {key: value for key, value in {**learned, **request.options}.items() if key in known}
    return {"target_type": "float" if task == "regression" else "str", **section, "kind": kind}


def _included(column: str) -> str | Mapping[str, Any]:
    """Return a column as the configuration has it: by its name, or as `{column: NAME, name: ANOTHER}`."""
    if column.startswith("{"):
        with contextlib.suppress(yaml.YAMLError):
            written = yaml.safe_load(column)
            if isinstance(written, dict) and "column" in written:
                return written
    return column


def _option(key: str) -> str:
    return f"--{key.replace('_', '-')}" if key not in ("", "path") else "FILE"


def _of_option(problem: Problem) -> Problem:
    """Return a problem of the configuration under the option that sets its key."""
    if problem.within("predictions.include"):
        return problem._replace(path="--include")
    section, _, key = problem.path.partition(".")
    return problem._replace(path=_option(key)) if section == "source" else problem


def _advice(reasons: Mapping[str, int]) -> str:
    most = max(reasons, key=lambda reason: reasons[reason])
    advice = _ADVICE.get(most)
    return f", most of them for the reason {most}" + ("" if advice is None else f": {advice}")
