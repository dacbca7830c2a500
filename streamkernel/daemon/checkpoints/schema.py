"""What the header of a checkpoint must hold: every entry that is used, its type and its bounds.

The SHA-256 finds accidents. What a file with the right sum says is looked at here before any of it is used, so that a
header which lacks a key or lies about a number is one sentence, and the next older checkpoint is tried.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    FiniteFloat,
    Strict,
    ValidationError,
    model_validator,
)

from streamkernel.connectors.kafka.writing.mark import OutputMark
from streamkernel.connectors.ports import SinkError
from streamkernel.daemon.base.counts import RecordCounts
from streamkernel.daemon.base.errors import CheckpointError, UnfitError

__all__ = ["check_header"]

_MOST = 2**63 - 1
_LATEST = 253_402_300_799  # the last second of the year 9999
_DEEPEST = 32
_COUNTS = {field.name for field in fields(RecordCounts)}


def _complete(counts: dict[str, int]) -> dict[str, int]:
    if missing := _COUNTS - counts.keys():
        raise ValueError(f"the count {min(missing)!r} is missing")
    return counts


def _plain(value: Any, depth: int = 0) -> Any:
    if depth > _DEEPEST:
        raise ValueError("nested too deeply")
    if isinstance(value, dict | list):
        for item in value.values() if isinstance(value, dict) else value:
            _plain(item, depth + 1)
    elif isinstance(value, int | float) and not abs(value) <= _MOST:  # nor is NaN
        raise ValueError("holds a number out of range")
    return value


def _mark(mark: Any) -> Any:
    # A number of a sink that counts its lines, an object of a file or a topic.
    if isinstance(mark, bool) or not (mark is None or isinstance(mark, dict) or (isinstance(mark, int) and mark >= 0)):
        raise ValueError("must be a whole number, an object or null")
    _plain(mark)
    if isinstance(mark, dict):
        length = mark.get("length", 0)
        if type(length) is not int or length < 0:
            raise ValueError("its length must be a whole number of at least 0")
        if "stream" in mark:
            try:
                OutputMark.from_json(mark)
            except SinkError as error:
                raise ValueError(str(error)) from None
    return mark


def _one_place_each(positions: list[_Place]) -> list[_Place]:
    partitions = [position[1] for position in positions]
    if len(set(partitions)) < len(partitions):
        raise ValueError("a partition is listed twice")
    return positions


_Count: TypeAlias = Annotated[int, Field(ge=0, le=_MOST)]
_Counts: TypeAlias = Annotated[dict[str, _Count], AfterValidator(_complete)]
_InputNames: TypeAlias = Annotated[str, Field(pattern="^([0-9a-f]{16})*( ([0-9a-f]{2})+)*$")]
# JSON has no tuples: its lists are.
_Place: TypeAlias = (
    Annotated[tuple[str, _Count, _Count], Strict(False)]
    | Annotated[tuple[str, _Count, _Count, dict[str, Any]], Strict(False)]
)
_Replayed: TypeAlias = Annotated[
    tuple[Literal["records", "labels"], _Count, _Count, list[_Count]],
    Strict(False),
]
_Promotion: TypeAlias = Annotated[tuple[_Count, str, str], Strict(False)]
#: The number of targets, their mean and the sum of their squared deviations.
_Moments: TypeAlias = Annotated[
    tuple[Annotated[int, Field(ge=0)], FiniteFloat, Annotated[float, Field(ge=0, allow_inf_nan=False)]],
    Strict(False),
]


class _Part(BaseModel):
    # Other entries are let be: what is not used does no harm, and later versions may write more.
    model_config = ConfigDict(strict=True, extra="ignore", hide_input_in_errors=True)


class _OutputHeader(_Part):
    path: str = "-"
    mark: Annotated[Any, AfterValidator(_mark)] = None


class _LabelsHeader(_Part):
    pending: _Count
    bytes: _Count


class _FittedLabels(_Part):
    key: str
    source: dict[str, Any]


class _FittedConfig(_Part):
    models: dict[str, list[Any]] | None = None
    publish: str | None = None
    source: dict[str, Any]
    labels: _FittedLabels | None = None
    warm_start: dict[str, Any] | None = None


class _ModelHeader(_Part):
    state_digest: str = ""
    expert_weights: dict[str, FiniteFloat] = {}
    input_importance: dict[str, FiniteFloat] = {}


class _NamedModelHeader(_Part):
    bytes: _Count
    began: _Count
    shown: _Count
    recent_refused: list[_Count] = []
    disabled: str = ""
    inputs: _InputNames = ""
    target_moments: _Moments | None = None
    model: _ModelHeader | None = None


class _PredictedWith(_Part):
    checkpoint: _Count
    records: _Count


class _WarmStart(_Part):
    account: _Counts
    recent_dead: list[_Count]
    positions: Annotated[list[_Place], AfterValidator(_one_place_each)]
    done: bool


class _Versions(_Part):
    streamkernel: str
    river: str


class _Header(_Part):
    written: Annotated[float, Field(ge=0, le=_LATEST)]
    mode: Literal["learn", "predict"]
    account: _Counts
    recent_dead: list[_Count]
    positions: Annotated[list[_Place], AfterValidator(_one_place_each)]
    outputs: dict[str, _OutputHeader]
    labels: _LabelsHeader | None = None
    inputs: _InputNames = ""
    target_moments: _Moments | None = None
    models: dict[str, _NamedModelHeader] | None = None
    published: str = ""
    promotions: list[_Promotion] = []
    predicted_with: _PredictedWith | None = None
    replayed: list[_Replayed] = []
    warm_start: _WarmStart | None = None
    config: _FittedConfig
    model: _ModelHeader
    versions: _Versions

    @model_validator(mode="after")
    def _labels_are_configured(self) -> _Header:
        if self.labels is not None and self.config.labels is None:
            raise ValueError("labels: it has late labels, and its configuration none")
        return self

    @model_validator(mode="after")
    def _one_is_published(self) -> _Header:
        published = None if self.models is None else self.models.get(self.published)
        if self.models is not None and (published is None or published.disabled):
            raise ValueError("published: must be one of its models that is not disabled")
        return self


def check_header(header: Mapping[str, Any]) -> None:
    """Refuse a header that lacks what a run needs to continue.

    Raises
    ------
    UnfitError
        Where it counts what this version does not know.
    CheckpointError
        Naming the first entry that is missing or wrong.

    Examples
    --------
    >>> check_header({"written": -1})
    Traceback (most recent call last):
        ...
    streamkernel.daemon.base.errors.CheckpointError: its header cannot be used: written: Input should be ...

    """
    try:
        _Header.model_validate(header)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False, include_context=False)[0]
        where = ".".join(str(part) for part in first["loc"])
        text = first["msg"].removeprefix("Value error, ")
        raise CheckpointError(f"its header cannot be used: {f'{where}: ' if where else ''}{text:.200}") from None
    except RecursionError:
        raise CheckpointError("its header cannot be used: it is nested too deeply") from None
    counts = header["account"].keys() | (header.get("warm_start") or {"account": {}})["account"].keys()
    if unknown := counts - _COUNTS:
        raise UnfitError(f"the checkpoint counts {min(unknown)!r:.60}, which this streamkernel does not: update it")
