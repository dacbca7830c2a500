"""The OpenAPI document of the service is one, and what is answered is what it says."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from jsonschema import Draft202012Validator  # type: ignore[import-untyped]

from streamkernel.daemon.assembly.plan import prepare
from streamkernel.daemon.runtime import run
from streamkernel.daemon.serve.openapi import openapi, page
from streamkernel.daemon.serve.roles import service_plan
from tests.daemon.conftest import Home
from tests.daemon.service import DIRECT, LATE, serving

AUTH = {"username": "me", "password": "it"}
CASES: dict[str, dict[str, Any]] = {
    "predictions alone": {"serve": {"port": 0}},
    "labeled records": DIRECT,
    "late labels": LATE,
    "a password": {**LATE, "serve": {"port": 0, "basic_auth": AUTH}},
    "numbers": {**DIRECT, "model": [{"streamkernel.KernelRegressor": {"seed": 1, "max_features": 256}}]},
}
OF_OPERATIONS = {"operationId", "summary", "parameters", "requestBody", "responses", "security"}


def document_of(home: Home, name: str) -> dict[str, Any]:
    sections = CASES[name]
    if name == "numbers":
        sections = {**sections, "source": {**sections["source"], "target_type": "float"}}
    return openapi(service_plan(prepare(home.configure(**sections))))


def parts(tree: Any) -> Iterator[dict[str, Any]]:
    """Yield each object of a document."""
    if isinstance(tree, dict):
        yield tree
        for one in tree.values():
            yield from parts(one)
    elif isinstance(tree, list):
        for one in tree:
            yield from parts(one)


def resolved(document: dict[str, Any], reference: str) -> dict[str, Any]:
    root, *names = reference.split("/")
    assert root == "#"
    found: Any = document
    for name in names:
        found = found[name]
    assert isinstance(found, dict)
    return found


def fits(document: dict[str, Any], value: Any, schema: dict[str, Any]) -> bool:
    """Whether a value is what a schema of the document says."""
    validator: Any = Draft202012Validator({**schema, "components": document["components"]})
    return bool(validator.is_valid(value))


@pytest.mark.parametrize("name", CASES)
def test_it_is_an_openapi_document(here: Home, name: str) -> None:
    document = document_of(here, name)
    assert document["openapi"] == "3.1.0"
    operations = [one for methods in document["paths"].values() for one in methods.values()]
    assert len({one["operationId"] for one in operations}) == len(operations)
    for operation in operations:
        assert operation.keys() <= OF_OPERATIONS
        assert all(response["description"] for response in operation["responses"].values())
        for needed in operation.get("security", document.get("security", [])):
            assert needed.keys() <= document["components"]["securitySchemes"].keys()
    for one in parts(document):
        if isinstance(one.get("$ref"), str):
            assert resolved(document, one["$ref"])
        if isinstance(one.get("type"), str) and "properties" in one:
            assert one["type"] == "object"
            assert set(one.get("required", [])) <= one["properties"].keys()


def test_probes_need_no_password_and_the_rest_says_so(here: Home) -> None:
    paths = document_of(here, "a password")["paths"]
    assert paths["/readyz"]["get"]["security"] == paths["/healthz"]["get"]["security"] == []
    asking = [path for path, methods in paths.items() for one in methods.values() if "401" in one["responses"]]
    assert asking == ["/predict", "/learn", "/metrics"]


@pytest.mark.parametrize("name", ["labeled records", "late labels"])
def test_what_is_answered_is_what_it_says(here: Home, name: str) -> None:
    run(prepare(here.configure()))
    with serving(here, **CASES[name]) as (client, _):
        document = client.ask("/openapi.json")[1]
        good, bad = {"id": 1, "a": 0.5, "y": "yes"}, {"id": 2, "a": [1]}
        for path in ("/predict", "/learn"):
            for body in (good, bad, [good, bad], [], b"{", {"a": "x" * 300}):
                code, answer = client.ask(path, body)
                content = document["paths"][path]["post"]["responses"][str(code)]["content"]
                assert fits(document, answer, content["application/json"]["schema"]), (path, body, answer)
        assert client.ask("/predict", b"{}", Content_Type="text/plain")[0] == 415
        assert not fits(document, {"prediction": 1}, {"$ref": "#/components/schemas/Prediction"})


def test_names_in_the_page_are_no_markup(here: Home) -> None:
    source = {**DIRECT["source"], "target": "<script>alert(1)</script>"}
    text = page(service_plan(prepare(here.configure(**{**DIRECT, "source": source}))), "no <b>checkpoint</b>")
    assert "<script>" not in text
    assert "<b>checkpoint" not in text
    assert "POST /predict" in text
