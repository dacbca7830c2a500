"""The answers to /predict and /learn."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from http import HTTPStatus
from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from streamkernel.connectors.journal.writer import JournalEntry, Refusal
from streamkernel.connectors.ports import Fault, Record
from streamkernel.daemon.serve.bodies import (
    RefusedError,
    fault_answer,
    fault_status,
    json_response,
    split,
)
from streamkernel.daemon.serve.group_commit import GroupCommit, JournalError
from streamkernel.daemon.serve.predictor import NoModelError, Predictor
from streamkernel.daemon.serve.roles import Role, ServicePlan
from streamkernel.daemon.serve.service_metrics import ServiceMetrics

__all__ = ["ServiceEndpoints"]

_RETRY_SECONDS = 5
_LONGEST_ID = 256
_ID = re.compile(r"[\x21-\x7e]+")
_STATUS = "status"


class ServiceEndpoints:
    """The endpoints of the service.

    Parameters
    ----------
    service
        The configuration.
    predictor
        Has the model.
    journals
        By the section of the source that reads them.
    metrics
        Counts and measures.

    """

    def __init__(
        self,
        service: ServicePlan,
        predictor: Predictor,
        journals: Mapping[str, GroupCommit],
        metrics: ServiceMetrics,
    ) -> None:
        self._service = service
        self._predictor = predictor
        self._journals = journals
        self._metrics = metrics

    def routes(self) -> list[Route]:
        """Return the routes; /learn only where a journal takes the records."""
        routes = [Route("/predict", self._measured("/predict", self.predict), methods=["POST"])]
        if self._service.labels.section in self._journals:
            routes.append(Route("/learn", self._measured("/learn", self.learn), methods=["POST"]))
        return routes

    async def predict(self, request: Request, body: bytes) -> Response:
        """Answer with predictions; records that have the key are appended to the journal, to be joined with labels."""
        role = self._service.records
        raws, many = split(body, request.headers, self._service.settings.max_records)
        records = [role.read(raw) for raw in raws]
        keys = [role.key_in(record) for record in records]
        answers = await self._predictions(records)
        journal = self._journals.get(role.section) if self._service.has_late_labels else None
        kept = [
            place
            for place, key in enumerate(keys)
            if journal is not None and key is not None and not isinstance(answers[place], Fault)
        ]
        if journal is not None and kept:
            entries = [JournalEntry(raws[place], role.id_of(keys[place])) for place in kept]
            for place, status in zip(kept, await self._append(journal, entries), strict=True):
                given = answers[place]
                assert isinstance(given, dict)
                given[_STATUS] = status
        return self._answer(role, answers, many, HTTPStatus.ACCEPTED if kept else HTTPStatus.OK)

    async def learn(self, request: Request, body: bytes) -> Response:
        """Append what is to be learned to the journal."""
        role = self._service.labels
        raws, many = split(body, request.headers, self._service.settings.max_records)
        records = [role.read_labeled(raw) for raw in raws]
        ids = (
            [role.id_of(role.key_in(record)) for record in records]
            if role.key is not None
            else _ids(request.headers, len(raws), many)
        )
        # What the learner would refuse ends it. A label that comes after its record has a key, and no inputs.
        faults = [one.fault or (self._predictor.refusal(one.x) if role.key is None else None) for one in records]
        good = [place for place, fault in enumerate(faults) if fault is None]
        answers: list[dict[str, Any] | Fault] = [fault or {} for fault in faults]
        if good:
            # Of a key, the first label counts; a request that is sent again is the same request.
            entries = [JournalEntry(raws[place], ids[place], exact=role.key is None) for place in good]
            for place, status in zip(good, await self._append(self._journals[role.section], entries), strict=True):
                answers[place] = {_STATUS: status}
        return self._answer(role, answers, many, HTTPStatus.ACCEPTED)

    async def _predictions(self, records: Sequence[Record]) -> list[dict[str, Any] | Fault]:
        """Return the answer for each record, or its fault."""
        answers: list[dict[str, Any] | Fault] = [record.fault or {} for record in records]
        good = [place for place, record in enumerate(records) if record.fault is None]
        key = self._predictor.label_key or self._service.records.key
        rows = [{name: value for name, value in records[place].x.items() if name != key} for place in good]
        try:
            predicted = await self._predictor.predict(rows) if rows else []
        except NoModelError as error:
            detail = f"there is no model yet: {error}"
            raise RefusedError(HTTPStatus.SERVICE_UNAVAILABLE, "no_model", detail, _RETRY_SECONDS) from None
        for place, answer in zip(good, predicted, strict=True):
            answers[place] = answer
        return answers

    async def _append(self, journal: GroupCommit, entries: Sequence[JournalEntry]) -> list[str]:
        """Append entries durably, and return what became of each."""
        try:
            return ["accepted" if new else "repeated" for new in await journal.append(entries)]
        except JournalError as error:
            unavailable, detail = HTTPStatus.SERVICE_UNAVAILABLE, str(error)
            if error.refusal is Refusal.FULL:
                raise RefusedError(unavailable, "journal_full", detail, self._service.retry_seconds) from None
            if error.refusal is Refusal.OTHER:
                detail = "this Idempotency-Key came with another body before: send a new key"
                raise RefusedError(HTTPStatus.UNPROCESSABLE_ENTITY, "idempotency_key", detail) from None
            raise RefusedError(unavailable, "journal", detail, _RETRY_SECONDS) from None

    def _answer(
        self, role: Role, answers: Sequence[dict[str, Any] | Fault], many: bool, status: HTTPStatus
    ) -> Response:
        self._metrics.count(answers)
        given = [fault_answer(one, role.section) if isinstance(one, Fault) else one for one in answers]
        if many:
            return json_response(status, given)
        (only,) = answers
        return json_response(fault_status(only) if isinstance(only, Fault) else status, given[0])

    def _measured(
        self, path: str, answer: Callable[[Request, bytes], Awaitable[Response]]
    ) -> Callable[[Request], Awaitable[Response]]:
        async def measured(request: Request) -> Response:
            body = await request.body()
            with self._metrics.request(path) as measure:
                try:
                    given = await answer(request, body)
                except RefusedError as error:
                    given = error.answer
                measure.status = given.status_code
                return given

        return measured


def _ids(headers: Mapping[str, str], n_records: int, many: bool) -> list[str | None]:
    """Return the id of each record by the header Idempotency-Key, None where there is none."""
    given = headers.get("idempotency-key")
    if given is None:
        return [None] * n_records
    if not _ID.fullmatch(given) or len(given) > _LONGEST_ID:
        detail = f"Idempotency-Key must be at most {_LONGEST_ID} printable characters without blanks"
        raise RefusedError(HTTPStatus.BAD_REQUEST, "idempotency_key", detail)
    # No header has a blank in it: the ids of many records are those of no other request.
    return [f"{given} {number}" for number in range(n_records)] if many else [given]
