"""What the service acknowledges with 202 is durable, and learned once; a journal that is full takes no more."""

from __future__ import annotations

import json
import sqlite3
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from typing import Any

import pytest

from streamkernel.connectors.journal.database import FILE
from streamkernel.connectors.journal.writer import JournalWriter
from streamkernel.daemon.assembly.plan import prepare
from streamkernel.daemon.runtime import run
from tests.daemon.conftest import Home
from tests.daemon.endpoint import values_of
from tests.daemon.service import DIRECT, LATE, Client, journalled, serving
from tests.processes import wait_until

ROW = {"a": 0.25, "y": "yes"}


def test_it_is_acknowledged_after_it_is_durable_and_published(here: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    order: list[str] = []
    reached, gate = threading.Event(), threading.Event()
    append = JournalWriter.append

    def commit(writer: JournalWriter, requests: Any) -> Any:
        reached.set()
        gate.wait()
        answers = append(writer, requests)
        order.append("durable")
        return answers

    with serving(here, **DIRECT) as (client, _):
        monkeypatch.setattr(JournalWriter, "append", commit)

        def ask() -> None:
            order.append(str(client.ask("/learn", ROW)[0]))

        asking = threading.Thread(target=ask)
        asking.start()
        reached.wait()
        assert (order, journalled(here)) == ([], [])
        gate.set()
        asking.join()
        assert (order, journalled(here)) == (["durable", "202"], [ROW])
        with closing(sqlite3.connect(here.folder / "out/records" / FILE)) as connection:
            assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)


def test_requests_of_a_moment_share_a_commit(here: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    """A commit that fails, whatever it raises, is answered, too."""
    groups: list[int] = []
    gate = threading.Event()
    append = JournalWriter.append

    def commit(writer: JournalWriter, requests: Any) -> Any:
        gate.wait()
        groups.append(len(requests))
        if len(groups) == 1:
            raise MemoryError
        return append(writer, requests)

    monkeypatch.setattr(JournalWriter, "append", commit)
    with serving(here, **DIRECT) as (asking, started), ThreadPoolExecutor(8) as pool:

        def ask(key: int) -> tuple[int, Any]:
            client = Client(started.port)
            try:
                return client.ask("/learn", ROW, Idempotency_Key=str(key))
            finally:
                client.close()

        asked = [pool.submit(ask, key) for key in range(8)]
        wait_until(lambda: values_of(asking.ask("/metrics")[1].decode())["http_requests_in_flight"] == 8)
        gate.set()
        refused = [one.result()[1]["error"]["detail"] for one in asked if one.result()[0] == 503]
        assert refused == ["the journal cannot be written: MemoryError"] * groups[0]
        assert sum(groups) == 8
        assert len(groups) == 2


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


def test_a_key_that_comes_again_with_another_body_is_refused_and_nothing_is_lost(here: Home) -> None:
    other = {**ROW, "a": 0.75}
    for restarted in (False, True):
        with serving(here, **DIRECT) as (client, _):
            first = "repeated" if restarted else "accepted"
            assert client.ask("/learn", ROW, Idempotency_Key="k") == (202, {"status": first})
            assert client.ask("/learn", [ROW, other], Idempotency_Key="m") == (202, [{"status": first}] * 2)
            for body, key in ((other, "k"), ([ROW, ROW], "m"), ([other, other, ROW], "m")):
                status, answer = client.ask("/learn", body, Idempotency_Key=key)
                assert (status, answer["error"]["reason"]) == (422, "idempotency_key")
                assert answer["error"]["detail"] == (
                    "this Idempotency-Key came with another body before: send a new key"
                )
        assert journalled(here) == [ROW, ROW, other]


def test_another_key_begins_with_no_repeats(here: Home) -> None:
    other = {**LATE, "labels": {**LATE["labels"], "key": "order"}}
    row = {"id": 1, "order": 1, "a": 0.5, "y": "yes"}
    for sections, first in ((LATE, "accepted"), (other, "accepted"), (LATE, "repeated")):
        with serving(here, **sections) as (client, _):
            assert client.ask("/learn", row) == (202, {"status": first})


def test_a_label_of_json_is_what_a_file_would_have(here: Home) -> None:
    """As text, true is the class "true", and 1 and 1.0 are "1", in a journal as in JSON lines."""
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
    assert sent == [line["target"] for line in here.lines("out/file.jsonl")] == ["true", "false", "1", "1", "True"]


def test_a_run_that_saves_makes_room(here: Home) -> None:
    """The oldest records go; what was acknowledged is learned once, and known again."""
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
        run(prepare(here.config))
        assert len(journalled(here)) < n_taken
        assert client.ask("/learn", {**ROW, **wide}, Idempotency_Key=f"{n_taken}") == (202, {"status": "accepted"})
        assert client.ask("/learn", {**ROW, **wide}, Idempotency_Key="0") == (202, {"status": "repeated"})
        run(prepare(here.config))
        assert here.header()["source"]["account"]["learned"] == n_taken + 1
