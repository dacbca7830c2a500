"""The description of the service for programs (OpenAPI 3.1) and for people, with the names of this configuration."""

from __future__ import annotations

import html
from importlib.metadata import version
from typing import Any

from streamkernel.connectors.encode import to_json
from streamkernel.daemon.monitoring.status.document import content_policy
from streamkernel.daemon.service.roles import Role, ServicePlan
from streamkernel.daemon.serving.endpoint import Answer, Endpoint, Question

__all__ = ["PAGE_POLICY", "openapi", "openapi_endpoint", "page"]

_FAULT = {
    "type": "object",
    "required": ["error"],
    "properties": {
        "error": {
            "type": "object",
            "required": ["reason", "detail"],
            "properties": {name: {"type": "string"} for name in ("reason", "detail", "remedy")},
        }
    },
}
_STATUS = {"type": "string", "enum": ["accepted", "repeated"]}
_RETRY = {"Retry-After": {"schema": {"type": "integer"}, "description": "Seconds."}}
_STYLE = (
    ":root{color-scheme:light dark}body{font:1rem/1.5 system-ui,sans-serif;max-width:50rem;margin:2rem auto;"
    "padding:0 1rem}table{display:block;overflow-x:auto}td{padding:.2rem 1rem .2rem 0}code{white-space:nowrap}"
    "pre{overflow-x:auto}"
)
PAGE_POLICY = content_policy(_STYLE)
"""The Content-Security-Policy of `page`."""
_PROBES = ("/healthz", "/readyz")  # which need no name and no password


def openapi(service: ServicePlan) -> dict[str, Any]:
    """Return the OpenAPI document of a service."""
    paths: dict[str, Any] = {"/predict": {"post": _predict(service)}}
    if service.labels.journal is not None:
        paths["/learn"] = {"post": _learn(service)}
    for path, summary in (
        ("/metrics", "Metrics for Prometheus."),
        ("/healthz", "Whether the process is well."),
        ("/readyz", "Whether all requests can be answered: there is a model, and the journal can be written."),
    ):
        responses = {"200": _text("Yes." if path in _PROBES else "Text.")}
        if path in _PROBES:
            responses["503"] = _text("No, and why.")
        paths[path] = {"get": {"operationId": path[1:], "summary": summary, "responses": responses}}
    schemas = {"Prediction": _prediction(service), "Fault": _FAULT, "Record": _record(service.records, labeled=False)}
    if service.labels.journal is not None:
        schemas |= {"Labeled": _record(service.labels, labeled=True), "Taken": _taken()}
    components: dict[str, Any] = {"schemas": schemas}
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
            for operation in methods.values():
                if path in _PROBES:
                    operation["security"] = []
                else:
                    operation["responses"]["401"] = _text("A name and a password are needed.")
    return document


def openapi_endpoint(service: ServicePlan) -> Endpoint:
    """Return the endpoint that has the document."""
    body = to_json(openapi(service))

    async def answer(question: Question) -> Answer:  # noqa: ARG001
        return Answer(200, body)

    return Endpoint("/openapi.json", "GET", answer)


def page(service: ServicePlan, obstacle: str | None) -> str:
    """Return a page for people: what there is, and how to ask for it."""
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


def _operation(summary: str, taken: str, given: str, status: str, limit: int) -> dict[str, Any]:
    one, fault = {"$ref": f"#/components/schemas/{taken}"}, {"$ref": "#/components/schemas/Fault"}
    answer = {"$ref": f"#/components/schemas/{given}"}
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


def _prediction(service: ServicePlan) -> dict[str, Any]:
    properties: dict[str, Any] = {
        "prediction": {"description": "The label or number; null before the model learned any."},
        "checkpoint": {"type": "integer", "description": "The checkpoint of the model that predicted it."},
    }
    if service.plan.models:
        properties["model"] = {"type": "string", "description": "The name of the model that predicted it."}
    if service.plan.task == "classification":
        properties["probabilities"] = {"type": "object", "additionalProperties": {"type": "number"}}
    elif service.plan.task == "regression":
        properties["std"] = {"type": ["number", "null"]}
    if service.has_late_labels and service.records.journal is not None:
        properties["status"] = _STATUS
    return {"type": "object", "required": ["prediction", "checkpoint"], "properties": properties}


def _taken() -> dict[str, Any]:
    return {"type": "object", "required": ["status"], "properties": {"status": _STATUS}}


def _record(role: Role, *, labeled: bool) -> dict[str, Any]:
    """Return the schema of an object: which names it has is a matter of the stream, but for key and label."""
    properties: dict[str, Any] = {name: {} for name in (role.key, role.target if labeled else None) if name is not None}
    required = [name for name in properties if labeled]
    return {"type": "object", "properties": properties, **({"required": required} if required else {})}
