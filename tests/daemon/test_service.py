"""Predictions over HTTP: what is answered, what is refused, and what goes into the journal."""

from __future__ import annotations

import base64
import json
import sqlite3
import time
from contextlib import ExitStack
from typing import Any

import pytest

from streamkernel.connectors.journal.writer import JournalWriter
from streamkernel.daemon.assembly.plan import prepare
from streamkernel.daemon.base.health import Health
from streamkernel.daemon.config.problems import ConfigError
from streamkernel.daemon.http import protocol
from streamkernel.daemon.runtime import run
from streamkernel.daemon.serve.roles import service_plan
from streamkernel.daemon.serve.run import start_service
from tests.daemon.conftest import Home
from tests.daemon.endpoint import values_of
from tests.daemon.raw_http import exchange, status
from tests.daemon.service import DIRECT, LATE, Client, journalled, serving

pytestmark = pytest.mark.usefixtures("processes")

X = {"a": 0.25, "b": -1.0, "color": "red"}


def learn(home: Home, **sections: Any) -> None:
    """Let a run learn the stream of the home into out/state."""
    home.configure(**sections)
    run(prepare(home.config))


class TestPredict:
    def test_one_and_many_are_answered_as_the_command_predicts(self, here: Home) -> None:
        learn(here)
        rows = [X, {"a": 3.5}, {"b": 0.5, "color": "blue", "new": 1}]
        (here.folder / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
        said = [json.loads(line) for line in here.call("predict", "out/state", "rows.jsonl").stdout.splitlines()]
        expected = [{key: line[key] for key in ("prediction", "probabilities", "checkpoint")} for line in said]
        with serving(here, serve={"port": 0}) as (client, _):
            assert client.ask("/predict", rows) == (200, expected)
            assert [client.ask("/predict", row) for row in rows] == [(200, one) for one in expected]
            assert client.ask("/predict", []) == (200, [])
            assert client.ask("/learn", {**X, "y": "yes"})[0] == 404  # the source is no journal
            document = client.ask("/openapi.json")[1]
            assert set(document["paths"]) == {"/predict", "/metrics", "/healthz", "/readyz"}
            assert b"openapi.json" in client.ask("/")[1]

    def test_a_bad_record_of_many_is_answered_in_its_place(self, here: Home) -> None:
        learn(here)
        bad = ['{"a": 1e400}', "[]", '{"a": {"b": 1}}', '{"a": "' + "x" * 300 + '"}', "null", '{"y": {}, "a": 1}']
        reasons = ["infinite", "not_an_object", "nested", "string_too_long", "not_an_object", "target"]
        good = json.dumps(X)
        body = f"[{good}, {', '.join(f'{one}, {good}' for one in bad)}\n]".encode()
        with serving(here, serve={"port": 0}) as (client, _):
            code, answers = client.ask("/predict", body)
            assert code == 200
            assert [one["error"]["reason"] for one in answers[1::2]] == reasons
            assert answers[::2] == [client.ask("/predict", X)[1]] * 7
            assert client.ask("/predict", b"[]") == (200, [])
            for one, reason in [pair for pair in zip(bad, reasons, strict=True) if pair[0] != "[]"]:
                code, answer = client.ask("/predict", one.encode())
                assert (code, answer["error"]["reason"]) == (400 if reason == "not_an_object" else 422, reason)

    def test_a_model_is_waited_for_and_a_newer_one_taken_over(self, here: Home) -> None:
        with serving(here, serve={"port": 0, "reload": 0.02}) as (client, _):
            code, answer = client.ask("/predict", X)
            assert (code, answer["error"]["reason"], client.headers["retry-after"]) == (503, "no_model", "5")
            assert client.ask("/readyz")[0] == 503
            for most in (200, 400):
                run(prepare(here.config), max_records=most)
                newest = max(int(path.stem[-12:]) for path in (here.folder / "out/state").glob("*.skc"))
                deadline = time.monotonic() + 60
                while client.ask("/predict", X)[1].get("checkpoint") != newest:
                    assert time.monotonic() < deadline
            assert client.ask("/readyz")[0] == 200
            samples = values_of(client.ask("/metrics")[1].decode())
            assert samples["model_checkpoint"] == newest
            assert samples["model_reloads_total"] >= 1
            assert samples["http_requests_total{path=/predict,status=503}"] >= 1

    def test_a_model_that_does_not_fit_ends_it(self, here: Home) -> None:
        learn(here)
        here.configure(model=[{"streamkernel.KernelClassifier": {"seed": 2}}], serve={"port": 0})
        done = here.call("serve", "config.yaml")
        assert done.returncode == 1
        assert "out/state" in done.stderr


class TestLateLabels:
    def test_records_and_labels_are_kept_once(self, here: Home) -> None:
        learn(here)
        with serving(here, **LATE) as (client, _):
            code, answer = client.ask("/predict", {**X, "id": 7, "note": "n"})
            assert (code, answer["status"]) == (202, "accepted")
            assert client.ask("/predict", [{**X, "id": "7"}, X, {"id": 8, "a": []}])[1] == [
                {**answer, "status": "repeated"},
                {key: answer[key] for key in ("prediction", "probabilities", "checkpoint")},
                {
                    "error": {
                        "reason": "nested",
                        "detail": "input 'a' is a list, not a number or a string",
                        "remedy": "set source.inputs.nested: flatten to make each inner value an input, or ignore",
                    }
                },
            ]
            assert client.ask("/learn", {"id": 7.0, "y": "yes"}) == (202, {"status": "accepted"})
            assert client.ask("/learn", {"id": 7, "y": "no"}) == (202, {"status": "repeated"})
            assert client.ask("/learn", {"id": 7})[0] == client.ask("/learn", {"y": "no"})[0] == 422
            samples = values_of(client.ask("/metrics")[1].decode())
            assert samples["journal_records_total{journal=source,result=accepted}"] == 1
            assert samples["journal_records_total{journal=labels.source,result=repeated}"] == 1
        assert journalled(here) == [{**X, "id": 7, "note": "n"}]
        assert journalled(here, "labels") == [{"id": 7.0, "y": "yes"}]
        with serving(here, **LATE) as (client, _):  # it remembers
            assert client.ask("/predict", {**X, "id": 7})[1]["status"] == "repeated"

    def test_a_full_journal_and_a_full_disk_are_503(self, here: Home, monkeypatch: pytest.MonkeyPatch) -> None:
        learn(here)
        small = {**LATE["source"], "max_bytes": 2**20}
        with serving(here, **{**LATE, "source": small}) as (client, _):
            wide = {f"c{number}": "x" * 200 for number in range(200)}
            codes = [client.ask("/predict", {"id": number, **X, **wide})[0] for number in range(40)]
            assert set(codes) == {202, 503}
            assert codes == sorted(codes)
            code, answer = client.ask("/predict", {"id": -1, **X, **wide})
            assert (code, answer["error"]["reason"], client.headers["retry-after"]) == (503, "journal_full", "30")
            assert client.ask("/predict", X)[0] == 200  # without a key nothing is kept

            def full(*_: Any) -> Any:
                error = sqlite3.OperationalError("database or disk is full")
                error.sqlite_errorname = "SQLITE_FULL"
                raise error

            monkeypatch.setattr(JournalWriter, "_append", full)
            code, answer = client.ask("/learn", {"id": 1, "y": "yes"})
            assert (code, answer["error"]["detail"]) == (503, "the journal cannot be written: the disk is full")
            assert client.ask("/readyz")[0] == 503
            monkeypatch.undo()
            assert client.ask("/learn", {"id": 1, "y": "yes"}) == (202, {"status": "accepted"})
            assert client.ask("/readyz")[0] == 200


class TestLearn:
    def test_a_repeat_is_known_by_its_idempotency_key(self, here: Home) -> None:
        learn(here)
        with serving(here, **DIRECT) as (client, _):
            row = {**X, "y": "yes"}
            assert client.ask("/learn", row, Idempotency_Key="k")[1] == {"status": "accepted"}
            assert client.ask("/learn", row, Idempotency_Key="k")[1] == {"status": "repeated"}
            assert client.ask("/learn", row)[1] == client.ask("/learn", row)[1] == {"status": "accepted"}
            many = [row, {**X, "y": ""}, row]
            first = client.ask("/learn", many, Idempotency_Key="m")[1]
            assert [one.get("status") for one in first] == ["accepted", None, "accepted"]
            again = client.ask("/learn", many, Idempotency_Key="m")[1]
            assert [one.get("status") for one in again] == ["repeated", None, "repeated"]
            assert client.ask("/learn", row, Idempotency_Key="a b")[0] == 400
            assert client.ask("/learn", row, Idempotency_Key="x" * 257)[0] == 400
            assert client.ask("/predict", X)[0] == 200
        assert journalled(here) == [row] * 5


class TestHostileRequests:
    """What a client must not be able to do: everything beyond HTTP itself is in test_http_*.py."""

    def test_bodies(self, here: Home) -> None:
        learn(here)
        cases: list[tuple[bytes, dict[str, str], int]] = [
            (b"", {}, 400),
            (b"  ", {}, 400),
            (b"{", {}, 400),
            (b"[" * 100_000, {}, 400),
            (b"[" * 100_000 + b"]" * 100_000, {}, 400),
            (b'{"a":' * 10_000 + b"1" + b"}" * 10_000, {}, 400),
            (b'[{"a": 1},]', {}, 400),
            (b'[{"a": 1} {"a": 1}]', {}, 400),
            (b"[{}]]", {}, 400),
            (b'["\xff"]', {}, 400),
            (b'{"a": "\xff"}', {}, 400),
            (b'{"a": ' + b"9" * 5000 + b"}", {}, 422),
            (b"[" + b"{}," * 1000 + b"{}]", {}, 413),
            (b"{}", {"Content_Type": "text/plain"}, 415),
            (b"{}", {"Content_Type": "application/x-www-form-urlencoded"}, 415),
            (b"{}", {"Content_Encoding": "gzip"}, 415),
            (b'{"a": 1}', {"Content_Type": "Application/JSON; charset=utf-8"}, 200),
            (b'\xef\xbb\xbf{"a": 1}', {}, 200),
            (b'\xef\xbb\xbf [{"a": 1}]', {}, 200),
        ]
        with serving(here, serve={"port": 0}) as (client, _):
            for body, headers, code in cases:
                assert client.ask("/predict", body, **headers)[0] == code, body[:30]
            assert client.ask("/predict", X)[0] == 200

    def test_a_body_that_is_too_long_is_not_read(self, here: Home, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(protocol, "_LOOK_SECONDS", 0.2)
        with serving(here, serve={"port": 0, "max_body_bytes": 1000}) as (_, started):
            head = "POST /predict HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
            answer = exchange(started.port, f"{head}Content-Length: 1001\r\n\r\n".encode())
            assert status(answer) == 413
            chunked = f"{head}Transfer-Encoding: chunked\r\n\r\n".encode() + b"400\r\n" + b"[" * 0x400 + b"\r\n"
            assert status(exchange(started.port, chunked)) == 413

    def test_names_hosts_and_methods(self, here: Home) -> None:
        with serving(here, serve={"port": 0, "basic_auth": {"username": "me", "password": "it"}}) as (client, started):
            assert [client.ask(path)[0] for path in ("/openapi.json", "/learn", "/healthz")] == [401, 401, 200]
            header = f"Basic {base64.b64encode(b'me:it').decode()}"
            assert client.ask("/predict", Authorization=header)[0] == 405
            foreign = b"POST /predict HTTP/1.1\r\nHost: evil.example\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"
            answer = exchange(started.port, foreign)
            assert status(answer) == 421
            assert b"add it to serve.allowed_hosts" in answer


@pytest.mark.parametrize(
    ("sections", "line"),
    [
        ({"checkpoint": None}, "checkpoint: required, serve reads the model of the run that learns from its directory"),
        (
            {"labels": {"key": "id", "source": {"kind": "journal", "directory": "out/labels"}}},
            "labels.source.target: required, it names the field that holds the label",
        ),
        (
            {**LATE, "labels": {"key": "id", "source": {**LATE["source"], "target": "y"}}},
            "labels.source.directory: must differ from source.directory, they are the same folder",
        ),
        ({**DIRECT, "source": {"kind": "journal", "directory": "out/state"}}, "must differ from checkpoint.directory"),
        ({"serve": {"port": 9108}, "metrics": {}}, "serve.port: must differ from metrics.port"),
        (
            {**DIRECT, "predictions": {"kind": "jsonl", "path": "out/records/journal.sqlite"}},
            "predictions.path: must not be a file that the daemon keeps in source.directory",
        ),
        ({"serve": {"journal": {}}}, "serve.journal: unknown key"),
    ],
)
def test_configurations_that_cannot_be_served(here: Home, sections: dict[str, Any], line: str) -> None:
    with pytest.raises(ConfigError) as caught:
        service_plan(prepare(here.configure(**sections)))
    assert line in "\n".join(caught.value.lines)


def test_a_group_is_served_by_partition(here: Home) -> None:
    learn(here, checkpoint={"directory": "out/state/partition-3"})
    path = here.configure(
        source={"kind": "kafka", "topic": "t", "bootstrap_servers": "nowhere:9092", "group": "g", "target": "y"},
        predictions={"kind": "none"},
        dead_letters={"kind": "none"},
        serve={"port": 0},
    )
    with pytest.raises(ConfigError, match="choose one with --partition N"):
        service_plan(prepare(path))
    with ExitStack() as stack:
        started = start_service(service_plan(prepare(path), 3), stack, Health())
        client = Client(started.port)
        stack.callback(client.close)
        assert client.ask("/predict", X)[1]["checkpoint"] > 0
        assert client.ask("/learn", X)[0] == 404  # labels come by the topic
    with pytest.raises(ConfigError, match=r"--partition: only with source\.group"):
        service_plan(prepare(here.configure()), 3)
