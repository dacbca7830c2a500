"""The description of the service for programs (OpenAPI 3.1) and for people, with the names of this configuration."""

from __future__ import annotations

import html
import json
from importlib.metadata import version
from importlib.resources import files
from typing import Any

import yaml
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from streamkernel.connectors.encode import to_json
from streamkernel.daemon.components.several_models import model_columns
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


def openapi(service: ServicePlan) -> dict[str, Any]:
    """Return the OpenAPI document of a service."""
    loaded = yaml.safe_load((files(__package__) / "openapi.yaml").read_text("utf-8"))
    document: dict[str, Any] = json.loads(json.dumps(loaded))  # no two places are one object, as anchors make them
    paths, components = document["paths"], document["components"]
    schemas, more = components["schemas"], components.pop("x-properties")
    document["info"]["version"] = version("streamkernel")
    plan, key = service.plan, service.records.key
    kept = service.has_late_labels and service.records.journal is not None
    there = {
        "model": bool(model_columns(plan.config)),
        "probabilities": plan.task == "classification",
        "std": plan.task == "regression",
        "status": kept,
    }
    schemas["Prediction"]["properties"] |= {name: more[name] for name, applies in there.items() if applies}
    if key:
        schemas["Record"]["properties"][key] = {}
    predict = paths["/predict"]["post"]["responses"]
    if kept:
        predict["202"]["description"] = f"Predicted; records with {key} are kept durably until their label comes."
    else:
        del predict["202"]
    if service.labels.journal is None:
        del paths["/learn"], schemas["Labeled"], schemas["Taken"]
    else:
        named = [name for name in (service.labels.key, service.labels.target) if name]
        schemas["Labeled"] |= {"properties": {name: {} for name in named}, "required": named}
        learn = paths["/learn"]["post"]
        if service.has_late_labels:
            learn["summary"] = "Learn from one label or many, each for a record that was or will be predicted."
            del learn["parameters"]
            learn["responses"]["422"]["description"] = "The one record cannot be used."
    for operation in (methods["post"] for methods in paths.values() if "post" in methods):
        body = operation["requestBody"]["content"]["application/json"]["schema"]
        body["anyOf"][1]["maxItems"] = service.settings.max_records
    _secure(document, service.settings.basic_auth is not None)
    return document


def _secure(document: dict[str, Any], asks: bool) -> None:
    """Say which operations ask for a name and a password, if any does."""
    if asks:
        document["components"]["securitySchemes"] = {"basic": {"type": "http", "scheme": "basic"}}
        document["security"] = [{"basic": []}]
    for methods in document["paths"].values():
        for operation in methods.values():
            if not asks:
                operation.pop("security", None)
            elif "security" not in operation:
                text = {"text/plain": {"schema": {"type": "string"}}}
                needed = {"description": "A name and a password are needed.", "content": text}
                operation["responses"]["401"] = needed


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
