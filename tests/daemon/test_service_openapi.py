"""The service: its OpenAPI document, what a 202 stands for, the room in a journal, and its metrics."""

from __future__ import annotations

import json
import os
import re
import subprocess
import threading
from collections.abc import Iterator
from typing import Any

import pytest
from jsonschema import Draft202012Validator  # type: ignore[import-untyped]
from prometheus_client import generate_latest

from connectors.journal import writer as writing
from streamkernel.daemon.runtime import run
from streamkernel.daemon.service.openapi import openapi, page
from streamkernel.daemon.service.roles import service_plan
from streamkernel.daemon.wiring.plan import prepare
from tests.daemon.conftest import Home
from tests.daemon.service import DIRECT, LATE, service_metrics, serving

AUTH = {"username": "me", "password": "it"}
CASES: dict[str, dict[str, Any]] = {
    "predictions alone": {"serve": {"port": 0}},
    "labelled records": DIRECT,
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
    assert document["info"].keys() == {"title", "version"}
    names = []
    for path, methods in document["paths"].items():
        assert path.startswith("/")
        for method, operation in methods.items():
            assert method in ("get", "post")
            assert operation.keys() <= OF_OPERATIONS
            names.append(operation["operationId"])
            assert operation["responses"]
            for status, response in operation["responses"].items():
                assert re.fullmatch("[1-5][0-9][0-9]", status)
                assert response.keys() <= {"description", "content", "headers"}
                assert response["description"]
            for parameter in operation.get("parameters", []):
                assert parameter["in"] == "header"
                assert {"name", "schema"} <= parameter.keys()
            assert ("requestBody" in operation) == (method == "post")
            for needed in operation.get("security", document.get("security", [])):
                assert needed.keys() <= document["components"]["securitySchemes"].keys()
    assert len(set(names)) == len(names)
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


@pytest.mark.parametrize("name", ["labelled records", "late labels"])
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


ROW = {"a": 0.25, "y": "yes"}


def test_it_is_acknowledged_after_it_is_durable_and_published(here: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    order: list[str] = []
    reached, gate = threading.Event(), threading.Event()
    real = os.fdatasync

    def sync(descriptor: int) -> None:
        reached.set()
        gate.wait()
        real(descriptor)
        order.append("durable")

    with serving(here, **DIRECT) as (client, _):
        before = (here.folder / "out/records/committed").read_bytes()
        monkeypatch.setattr(writing.os, "fdatasync", sync)

        def ask() -> None:
            order.append(str(client.ask("/learn", ROW)[0]))

        asking = threading.Thread(target=ask)
        asking.start()
        reached.wait()
        assert (here.folder / "out/records/committed").read_bytes() == before
        assert order == []
        gate.set()
        asking.join()
        assert order == ["durable", "202"]
        assert (here.folder / "out/records/committed").read_bytes() != before


def test_a_write_that_fails_whatever_it_raises_is_answered(here: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the thread that writes no request would ever be answered again."""

    def fail(*_: object) -> None:
        raise MemoryError

    with serving(here, **DIRECT) as (client, _):
        with monkeypatch.context() as patched:
            patched.setattr(writing.JournalWriter, "_write", fail)
            status, answer = client.ask("/learn", ROW, Idempotency_Key="1")
        assert (status, answer["error"]["reason"]) == (503, "journal")
        assert "MemoryError" in answer["error"]["detail"]
        assert client.ask("/learn", ROW, Idempotency_Key="1") == (202, {"status": "accepted"})


def test_a_journal_that_is_gone_takes_nothing(here: Home) -> None:
    with serving(here, **DIRECT) as (client, _):
        assert client.ask("/learn", ROW)[0] == 202
        (here.folder / "out/records").rename(here.folder / "out/elsewhere")
        status, answer = client.ask("/learn", ROW)
        assert (status, answer["error"]["reason"]) == (503, "journal")
        assert "put it back" in answer["error"]["detail"]
        assert client.ask("/readyz")[0] == 503
        (here.folder / "out/elsewhere").rename(here.folder / "out/records")
        assert client.ask("/learn", ROW)[0] == 202


def test_the_ids_of_an_array_are_those_of_no_other_request(here: Home) -> None:
    with serving(here, **DIRECT) as (client, _):
        taken = (202, {"status": "accepted"})
        assert client.ask("/learn", [ROW], Idempotency_Key="k") == (202, [taken[1]])
        assert [client.ask("/learn", ROW, Idempotency_Key=key) for key in ("k", "k/0", "k0")] == [taken] * 3
        assert client.ask("/learn", [ROW], Idempotency_Key="k") == (202, [{"status": "repeated"}])


def test_another_key_begins_with_no_repeats(here: Home) -> None:
    other = {**LATE, "labels": {**LATE["labels"], "key": "order"}}
    row = {"id": 1, "order": 1, "a": 0.5, "y": "yes"}
    for sections, first in ((LATE, "accepted"), (other, "accepted"), (LATE, "repeated")):
        with serving(here, **sections) as (client, _):
            assert client.ask("/learn", row) == (202, {"status": first})


def test_a_label_of_json_is_what_a_file_would_have(here: Home) -> None:
    """As text, true is the class "true" and 1 is "1", in a journal as in JSON lines."""
    labels = [True, False, 1, 1.0, "True"]
    rows = [{**ROW, "y": label} for label in labels]
    (here.folder / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    sections = {**DIRECT, "source": {**DIRECT["source"], "follow": False}}
    with serving(here, **sections) as (client, _):
        assert client.ask("/learn", rows)[0] == 202
    run(prepare(here.config))
    sent = [line["target"] for line in here.lines("out/predictions.jsonl")]
    out = {"predictions": {"kind": "jsonl", "path": "out/file.jsonl"}, "checkpoint": None}
    run(prepare(here.configure(source={"kind": "jsonl", "path": "rows.jsonl", "target": "y"}, **out)))
    assert sent == [line["target"] for line in here.lines("out/file.jsonl")] == ["true", "false", "1", "1.0", "True"]


def test_a_run_that_saves_makes_room(here: Home) -> None:
    """The oldest segments go; what was acknowledged is learnt once, and known again."""
    source = {**DIRECT["source"], "max_bytes": 2**20, "follow": False}
    sections = {**DIRECT, "source": source, "checkpoint": {"directory": "out/state", "every_records": 100, "keep": 2}}
    wide = {f"c{number}": "x" * 200 for number in range(100)}
    with serving(here, **sections) as (client, _):
        n_taken = 0
        while (answer := client.ask("/learn", {**ROW, **wide}, Idempotency_Key=f"{n_taken}"))[0] == 202:
            n_taken += 1
        assert answer[0] == 503
        assert answer[1]["error"]["reason"] == "journal_full"
        assert int(client.headers["retry-after"]) > 0
        before = sorted((here.folder / "out/records").glob("*.jsonl"))
        run(prepare(here.config))
        after = sorted((here.folder / "out/records").glob("*.jsonl"))
        assert len(after) < len(before)
        assert before[0] not in after
        assert client.ask("/learn", {**ROW, **wide}, Idempotency_Key=f"{n_taken}") == (202, {"status": "accepted"})
        assert client.ask("/learn", {**ROW, **wide}, Idempotency_Key="0") == (202, {"status": "repeated"})
        run(prepare(here.config))
        assert here.header()["account"]["learnt"] == n_taken + 1


def test_promtool_finds_no_fault(promtool: str) -> None:
    checked = subprocess.run(
        [promtool, "check", "metrics"],
        input=generate_latest(service_metrics().registry),
        capture_output=True,
        check=False,
    )
    assert (checked.returncode, checked.stdout, checked.stderr) == (0, b"", b"")
