"""The description of the service for programs (OpenAPI 3.1) and for people, with the names of this configuration."""

from __future__ import annotations

import html
from importlib.metadata import version
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, create_model
from pydantic.json_schema import models_json_schema
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from streamkernel.connectors.encode import to_json
from streamkernel.daemon.monitoring.status_page import content_policy
from streamkernel.daemon.serve.roles import ServicePlan

__all__ = ["PAGE_POLICY", "openapi", "openapi_route", "page"]

_STYLE = (
    ":root{color-scheme:light dark}body{font:1rem/1.5 system-ui,sans-serif;max-width:50rem;margin:2rem auto;"
    "padding:0 1rem}table{display:block;overflow-x:auto}td{padding:.2rem 1rem .2rem 0}code{white-space:nowrap}"
    "pre{overflow-x:auto}"
)
PAGE_POLICY = content_policy(_STYLE)
"""The Content-Security-Policy of `page`."""
_REFERENCE = "#/components/schemas/{model}"
_RETRY = {"Retry-After": {"schema": {"type": "integer"}, "description": "Seconds."}}
_Status = Literal["accepted", "repeated"]


class FaultDetail(BaseModel):
    """Why a request or a record cannot be used."""

    reason: str
    detail: str
    remedy: str = ""


class FaultAnswer(BaseModel):
    """The answer to a request or a record that cannot be used."""

    error: FaultDetail


class Taken(BaseModel):
    """The answer to a record or a label to learn."""

    status: _Status


def _prediction(service: ServicePlan) -> type[BaseModel]:
    fields: dict[str, Any] = {
        "prediction": (Any, Field(description="The label or number; null before the model learned any.")),
        "checkpoint": (int, Field(description="The checkpoint of the model that predicted it.")),
    }
    if service.plan.models:
        fields["model"] = (str, Field(description="The name of the model that predicted it."))
    if service.plan.task == "classification":
        fields["probabilities"] = (dict[str, float], Field({}, description="The probability of each class."))
    elif service.plan.task == "regression":
        fields["std"] = (float | None, Field(None, description="The standard deviation."))
    if service.has_late_labels and service.records.journal is not None:
        fields["status"] = (_Status, Field("accepted", description="For a record with the key."))
    return create_model("Prediction", **fields)


def _record(name: str, required: list[str | None], optional: list[str | None]) -> type[BaseModel]:
    """Return the model of an object with any fields; the configuration names some."""
    given = [(one, ...) for one in required if one] + [(one, None) for one in optional if one]
    # By alias: a name of the stream need not be one that Python takes.
    fields: dict[str, Any] = {
        f"field_{at}": (Any, Field(default, alias=one)) for at, (one, default) in enumerate(given)
    }
    return create_model(name, __config__=ConfigDict(extra="allow"), **fields)


def openapi(service: ServicePlan) -> dict[str, Any]:
    """Return the OpenAPI document of a service."""
    bodies: list[type[BaseModel]] = [_prediction(service), FaultAnswer, _record("Record", [], [service.records.key])]
    paths: dict[str, Any] = {"/predict": {"post": _predict(service)}}
    if service.labels.journal is not None:
        bodies += [_record("Labeled", [service.labels.key, service.labels.target], []), Taken]
        paths["/learn"] = {"post": _learn(service)}
    ok, no = _text("Yes."), _text("No, and why.")
    ready = "Whether all requests can be answered: there is a model, and the journal can be written."
    paths |= {
        "/metrics": {"get": _get("metrics", "Metrics for Prometheus.", {"200": _text("Text.")})},
        "/healthz": {"get": _get("healthz", "Whether the process is well.", {"200": ok, "503": no})},
        "/readyz": {"get": _get("readyz", ready, {"200": ok, "503": no})},
    }
    _, schemas = models_json_schema([(one, "validation") for one in bodies], ref_template=_REFERENCE)
    components: dict[str, Any] = {"schemas": schemas["$defs"]}
    document: dict[str, Any] = {
        "openapi": "3.1.0",
        "info": {"title": "streamkernel", "version": version("streamkernel")},
        "paths": paths,
        "components": components,
    }
    if service.settings.basic_auth is not None:
        components["securitySchemes"] = {"basic": {"type": "http", "scheme": "basic"}}
        document["security"] = [{"basic": []}]
        for path, methods in paths.items():
            (operation,) = methods.values()
            if path in ("/healthz", "/readyz"):
                operation["security"] = []
            else:
                operation["responses"]["401"] = _text("A name and a password are needed.")
    return document


def openapi_route(service: ServicePlan) -> Route:
    """Return the route of the document."""
    body = to_json(openapi(service))

    async def answer(request: Request) -> Response:  # noqa: ARG001
        return Response(body, media_type="application/json")

    return Route("/openapi.json", answer)


def page(service: ServicePlan, obstacle: str | None) -> str:
    """Return a page for people: the endpoints, and how to ask for a prediction."""
    document = openapi(service)
    rows = "".join(
        f"<tr><td><code>{method.upper()} {path}</code><td>{html.escape(one['summary'])}"
        for path, methods in document["paths"].items()
        for method, one in methods.items()
    )
    state = "predicting" if obstacle is None else html.escape(obstacle)
    target = service.labels.target or service.records.target or "the label"
    asked = html.escape(
        "curl -H 'Content-Type: application/json' -d '{\"NAME\": VALUE, ...}' "
        f"{'http' if service.settings.tls is None else 'https'}://HOST:PORT/predict"
    )
    return (
        '<!doctype html><html lang="en"><meta charset="utf-8"><title>streamkernel</title>'
        f'<meta name="viewport" content="width=device-width, initial-scale=1"><style>{_STYLE}</style>'
        f"<h1>streamkernel</h1><p>Predictions of <b>{html.escape(target)}</b>: {state}.</p><table>{rows}</table>"
        f'<pre>{asked}</pre><p><a href="openapi.json">openapi.json</a> has the details.</p></html>\n'
    )


def _predict(service: ServicePlan) -> dict[str, Any]:
    limit = service.settings.max_records
    operation = _operation("Predict one record or many.", "Record", "Prediction", "200", limit)
    if service.has_late_labels and service.records.journal is not None:
        operation["responses"]["202"] = {
            **operation["responses"]["200"],
            "description": f"Predicted; records with {service.records.key} are kept durably until their label comes.",
        }
    return operation


def _learn(service: ServicePlan) -> dict[str, Any]:
    summary = "Learn from one label or many, each for a record that was or will be predicted."
    if not service.has_late_labels:
        summary = "Learn from one labeled record or many."
    operation = _operation(summary, "Labeled", "Taken", "202", service.settings.max_records)
    if not service.has_late_labels:
        operation["parameters"] = [
            {
                "name": "Idempotency-Key",
                "in": "header",
                "schema": {"type": "string", "maxLength": 256},
                "description": "A request with the key of an earlier one is a repeat of it.",
            }
        ]
        operation["responses"]["422"]["description"] += " Or the Idempotency-Key came with another body before."
    return operation


def _text(description: str) -> dict[str, Any]:
    return {"description": description, "content": {"text/plain": {"schema": {"type": "string"}}}}


def _get(name: str, summary: str, responses: dict[str, Any]) -> dict[str, Any]:
    return {"operationId": name, "summary": summary, "responses": responses}


def _operation(summary: str, taken: str, given: str, status: str, limit: int) -> dict[str, Any]:
    one, answer, fault = ({"$ref": _REFERENCE.format(model=name)} for name in (taken, given, "FaultAnswer"))
    many = {"type": "array", "items": {"anyOf": [answer, fault]}}

    def said(description: str) -> dict[str, Any]:
        return {"description": description, "content": {"application/json": {"schema": fault}}}

    return {
        "operationId": "predict" if given == "Prediction" else "learn",
        "summary": summary,
        "requestBody": {
            "required": True,
            "content": {
                "application/json": {"schema": {"anyOf": [one, {"type": "array", "maxItems": limit, "items": one}]}}
            },
        },
        "responses": {
            status: {
                "description": "An answer for each record. With many records, the answer for an unusable one is an "
                "error.",
                "content": {"application/json": {"schema": {"anyOf": [answer, many]}}},
            },
            "400": said("The body is not JSON."),
            "413": said("The body is too long."),
            "415": said("Content-Type is not application/json."),
            "422": said("The one record cannot be used."),
            "503": {**said("Not now: there is no model yet, or the journal is full."), "headers": _RETRY},
        },
    }
