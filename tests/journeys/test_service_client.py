"""Somebody with a web application: asks `streamkernel serve`, sends records to learn, reads the documents alone."""

from __future__ import annotations

import base64
import json
import re
import signal
import time
from collections.abc import Callable
from contextlib import ExitStack, suppress
from typing import Any

import pytest
import yaml

from tests.daemon.conftest import Running
from tests.daemon.endpoint import values_of
from tests.daemon.service import Client
from tests.journeys.conftest import Person
from tests.journeys.orders import as_csv, as_json_lines, orders
from tests.journeys.pages import command, sections

COMMANDS = "reference/command-line.md"
SERVING = "how-to/serving.md"
ROWS = 300
SECRET = "correct-horse-battery"
#: A model that starts at once stands in for the adaptive one.
QUICK: list[Any] = [{"streamkernel.KernelClassifier": {"seed": 1, "max_features": 256}}]
CHECKPOINT = {"directory": "out/orders", "every_seconds": 0.2}


class Application:
    """The web application: it asks with its password, and again where it is told to come later."""

    def __init__(self, service: Running, stack: ExitStack) -> None:
        stack.callback(ended, service)
        port = service.wait_for(r"serving predictions at http://127\.0\.0\.1:(\d+)")[1]
        self.client = Client(int(port))
        stack.callback(self.client.close)
        self.headers = {"Authorization": "Basic " + base64.b64encode(f"web:{SECRET}".encode()).decode()}

    def ask(self, path: str, body: Any = None, **headers: str) -> tuple[int, Any]:
        return self.client.ask(path, body, **{**self.headers, **headers})

    def metrics(self) -> dict[str, float]:
        return values_of(self.ask("/metrics")[1].decode())


def eventually(said: Callable[[], Any]) -> Any:
    """Return what a question gives once it is true."""
    for _ in range(3000):
        if found := said():
            return found
        time.sleep(0.02)
    raise AssertionError("it never came to that")


def checkout(row: dict[str, str]) -> dict[str, Any]:
    """An order as the application has it before it is delivered."""
    form = {name: value for name, value in row.items() if name != "late"}
    return {**form, "price": None if form["price"] == "n/a" else float(form["price"])}


def ended(running: Running) -> None:
    """Leave nothing behind where a test fails."""
    with suppress(ProcessLookupError):
        running.signal(signal.SIGKILL)


def stopped(*running: Running) -> None:
    for one in running:
        one.signal(signal.SIGTERM)
        assert one.wait().returncode == 0, one.log


@pytest.fixture
def shop(person: Person) -> Person:
    """The export of a shop, and a configuration that was put together from `init` and the page on serving."""
    (person.folder / "orders.csv").write_bytes(as_csv(orders(ROWS), {7: "A-00007,,,"}))
    assert person.types(command(COMMANDS, "init orders.csv")).returncode == 0
    source = yaml.safe_load((person.folder / "orders.yaml").read_text())["source"]
    settings = yaml.safe_load(sections(SERVING, "orders-service.yaml"))
    settings["warm_start"]["source"] = source
    settings["source"]["inputs"] = source["inputs"]
    settings |= {"model": QUICK, "checkpoint": CHECKPOINT}
    settings["serve"] |= {"port": 0, "reload": 0.1, "max_records": 50}
    person.writes("service.yaml", settings)
    return person


def test_an_application_asks_and_teaches(shop: Person) -> None:
    # What init excludes is the key here: the refusal says so, and what it names is done.
    refused = shop.types(["check", "service.yaml"], PASSWORD=SECRET)
    assert refused.returncode == 2
    assert "source.inputs.exclude: must not name labels.key 'order id'" in refused.stderr
    settings = yaml.safe_load((shop.folder / "service.yaml").read_text())
    del settings["source"]["inputs"]["exclude"]
    shop.writes("service.yaml", settings)
    assert "PASSWORD" in shop.types(["check", "service.yaml"]).stderr
    assert shop.types(["check", "service.yaml"], PASSWORD=SECRET).returncode == 0

    with ExitStack() as stack:
        # The service may come first: it says what it waits for.
        service = shop.starts(*command(COMMANDS, "serve", CONFIG="service.yaml"), PASSWORD=SECRET)
        web = Application(service, stack)
        code, answer = web.ask("/predict", {"zip": "01003"})
        assert (code, answer["error"]["reason"], web.client.headers["retry-after"]) == (503, "no_model", "5")
        assert "start the run that learns first" in answer["error"]["detail"]
        run = shop.starts(*command(COMMANDS, "run", CONFIG="service.yaml"), PASSWORD=SECRET)
        stack.callback(ended, run)
        eventually(lambda: web.metrics()["model_checkpoint_records"] == ROWS - 1)

        new = orders(30, first=ROWS)
        code, one = web.ask("/predict", checkout(new[0]))
        assert (code, one["status"], set(one["probabilities"])) == (202, "accepted", {"yes", "no"})
        code, many = web.ask("/predict", [*map(checkout, new[1:]), {"order id": "A-9", "placed at": "tomorrow"}])
        assert (code, [answer.get("status") for answer in many]) == (202, ["accepted"] * 29 + [None])
        assert many[-1]["error"]["reason"] == "input_type"
        # A question without the key is answered, and not kept.
        asked = {name: value for name, value in checkout(new[0]).items() if name != "order id"}
        assert web.ask("/predict", asked)[0] == 200

        document = web.ask("/openapi.json")[1]
        assert {"/predict", "/learn"} <= document["paths"].keys()
        assert document["components"]["schemas"]["Labeled"]["required"] == ["order id", "late"]
        assert document["security"]
        assert b"Predictions of <b>late</b>: predicting" in web.ask("/")[1]

        # What became of the orders is new to the model: these were lost. Each is learned once.
        outcomes = [{"order id": row["order id"], "late": "lost"} for row in new]
        assert web.ask("/learn", outcomes[0]) == (202, {"status": "accepted"})
        code, said = web.ask("/learn", [*outcomes, *outcomes[:20]])
        assert [answer["status"] for answer in said] == ["repeated"] + ["accepted"] * 29 + ["repeated"] * 20
        eventually(lambda: "lost" in web.ask("/predict", asked)[1]["probabilities"])

        # One process is stopped and the other killed; both come back, and the application sends all of it again.
        stopped(service)
        run.signal(signal.SIGKILL)
        assert run.wait().returncode == -signal.SIGKILL
        service = shop.starts("serve", "service.yaml", PASSWORD=SECRET)
        run = shop.starts("run", "service.yaml", PASSWORD=SECRET)
        stack.callback(ended, run)
        web = Application(service, stack)
        assert {answer["status"] for answer in web.ask("/learn", outcomes)[1]} == {"repeated"}
        assert web.ask("/predict", checkout(new[3]))[1]["status"] == "repeated"
        eventually(lambda: web.metrics()["model_checkpoint_records"] == ROWS - 1 + 30)
        metrics = web.metrics()
        assert metrics["journal_records_total{journal=labels.source,result=repeated}"] == 30
        assert metrics["journal_bytes{journal=source}"] > 0
        stopped(service, run)
    account = shop.inspects("out/orders")["source"]["account"]
    assert (account["consumed"], account["learned"], account["dead"]) == (30, 30, 0)
    for file in shop.folder.rglob("*"):
        assert not file.is_file() or SECRET.encode() not in file.read_bytes(), file
    assert SECRET not in service.log + run.log


def test_each_refusal_leads_on(shop: Person) -> None:
    settings = yaml.safe_load((shop.folder / "service.yaml").read_text())
    del settings["source"]["inputs"]["exclude"]
    shop.writes("service.yaml", {**settings, "limits": {"max_string": 40}})
    ended = ["--set", "source.follow=false", "--set", "labels.source.follow=false"]
    learned = shop.types(["run", "service.yaml", *ended], PASSWORD=SECRET)
    assert learned.returncode == 0, learned.stderr
    order = {"order id": "B-1", "placed at": "03.02.2024 11:00", "zip": "01003", "city": "Zürich", "price": 12.5}
    with ExitStack() as stack:
        service = shop.starts("serve", "service.yaml", PASSWORD=SECRET)
        web = Application(service, stack)

        def refused(path: str, body: Any, status: int, said: str, **headers: str) -> None:
            code, answer = web.ask(path, body, **headers)
            text = answer.decode() if isinstance(answer, bytes) else " ".join(answer["error"].values())
            assert (code, re.search(said, text) is not None) == (status, True), (code, text)

        refused("/predict", order, 401, "(?i)unauthorized|password", Authorization="")
        refused("/predict", order, 415, "Content-Type must be application/json", Content_Type="text/plain")
        refused("/predict", None, 405, "only POST")
        refused("/predictions", order, 404, "/predict, /learn and /openapi.json are here")
        refused("/predict", b"zip=01003", 400, "not_json .*expected a JSON value")
        refused("/predict", json.dumps(order, ensure_ascii=False).encode("latin-1"), 400, "encoding .*UTF-8")
        refused("/predict", [order] * 51, 413, "50 records .serve.max_records.")
        refused("/predict", {**order, "zip": {"code": "01003"}}, 422, "set source.inputs.nested: flatten")
        refused("/predict", {**order, "placed at": "2024-02-03"}, 422, r"not a date of the format %d\.%m\.%Y %H:%M")
        refused("/predict", {**order, "comment": "x" * 50}, 422, "raise limits.max_string")
        refused(
            "/predict",
            json.dumps({**order, "price": 0}).replace(": 0}", ": 1e999}").encode(),
            422,
            "leave out the value, or leave the cell empty",
        )
        refused("/learn", {"late": "yes"}, 422, "no order id")
        refused("/learn", {"order id": "B-1"}, 422, "no late to learn")
        # What they asked for:
        for good in (order, [order] * 50, {**order, "zip": "01003"}, {**order, "comment": 'said "no"'}):
            assert web.ask("/predict", good)[0] == 202
        assert web.ask("/learn", {"order id": "B-1", "late": "yes"}) == (202, {"status": "accepted"})
        stopped(service)

    # Settings that a remedy named, then the same request again.
    mended = ["--set", "source.inputs.nested=flatten", "--set", "limits.max_string=60"]
    with ExitStack() as stack:
        service = shop.starts("serve", "service.yaml", *mended, PASSWORD=SECRET)
        web = Application(service, stack)
        assert web.ask("/predict", {**order, "comment": "x" * 50, "extra": {"gift": "yes"}})[0] == 202
        stopped(service)
    done = shop.types(["run", "service.yaml", *ended, *mended], PASSWORD=SECRET)
    assert done.returncode == 0, done.stderr
    account = shop.inspects("out/orders")["source"]["account"]
    assert (account["consumed"], account["learned"], account["dead"]) == (1, 1, 0)


def test_whole_records_with_their_labels_after_a_run_over_a_file(person: Person) -> None:
    person.writes("orders.jsonl", as_json_lines(orders(ROWS)))
    assert person.types(["init", "orders.jsonl", ">", "orders.yaml"]).returncode == 0
    settings = yaml.safe_load((person.folder / "orders.yaml").read_text()) | {"model": QUICK, "metrics": None}
    person.writes("orders.yaml", settings)
    assert person.types(["run", "orders.yaml"]).returncode == 0
    source = settings["source"]
    journal = {name: source[name] for name in ("target", "target_type", "inputs")}
    settings |= {
        "initial_model": {"checkpoint": "out/orders/state"},
        "source": {"kind": "journal", "directory": "out/journal", **journal},
        "predictions": {"kind": "none"},
        "dead_letters": {"kind": "none"},
        "checkpoint": {"directory": "out/service", "every_seconds": 0.2},
        "serve": {"port": 0, "reload": 0.1},
    }
    person.writes("service.yaml", settings)
    with ExitStack() as stack:
        run, service = person.starts("run", "service.yaml"), person.starts("serve", "service.yaml")
        stack.callback(ended, run)
        web = Application(service, stack)
        record = json.loads(as_json_lines(orders(1, first=900)))
        eventually(lambda: web.ask("/predict", record)[0] == 200)
        # No answer came, so it is sent again with the same header; and once more with another.
        for key, status in (("a1", "accepted"), ("a1", "repeated"), ("a2", "accepted")):
            assert web.ask("/learn", record, Idempotency_Key=key) == (202, {"status": status})
        code, answer = web.ask("/learn", record, Idempotency_Key="no blanks please")
        assert (code, "printable characters without blanks" in answer["error"]["detail"]) == (400, True)
        eventually(lambda: web.metrics()["model_checkpoint_records"] == 2)
        stopped(service, run)
    assert person.inspects("out/service")["source"]["account"]["learned"] == 2
