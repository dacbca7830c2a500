"""A daemon between two topics whose values have schemas in a registry: as exact as with JSON."""

from __future__ import annotations

import io
import json
import random
import signal
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import yaml

from streamkernel.daemon.run_state.models import published_entry
from tests.daemon.conftest import Home, Launcher
from tests.kafka.cluster import Cluster
from tests.kafka.learning import configure, learned, rings, section, stop
from tests.kafka.producing import consume, produce
from tests.registry.needs import needed
from tests.registry.schemas import avro_value, record
from tests.registry.server import RegistryServer

fastavro = needed("fastavro")
needed("google.protobuf")

Topics = Callable[..., str]
COUNT = 1500
RING = record("Ring", id="int", a="double", b="double", y="string")


@pytest.fixture
def registry() -> Iterator[RegistryServer]:
    with RegistryServer() as server:
        server.add(RING, subject="rings-value")
        yield server


def into(where: Home, bootstrap: str, topic: str, registry: RegistryServer) -> None:
    """Let the predictions of a configuration go to a topic."""
    settings = yaml.safe_load(where.config.read_text())
    settings["predictions"] = section(bootstrap, topic, value_format="avro", schema_registry={"url": registry.url})
    where.config.write_text(yaml.safe_dump(settings))


def lines(bootstrap: str, topic: str, registry: RegistryServer) -> list[Any]:
    """What a consumer with the schemas reads."""
    found = []
    for message in consume(bootstrap, topic)[0]:
        schema = registry.schemas[int.from_bytes(message.value[1:5], "big")]["schema"]
        parsed = fastavro.parse_schema(json.loads(schema))
        found.append(fastavro.schemaless_reader(io.BytesIO(message.value[5:]), parsed, None))
    return found


def test_killed_and_killed_again_it_ends_as_one_that_reads_json(
    broker: Cluster, topic: Topics, homes: Callable[[str], Home], launcher: Launcher, registry: RegistryServer
) -> None:
    in_avro, in_json, out = topic(), topic(), topic()
    rows = rings(COUNT)
    produce(broker.bootstrap, in_avro, [avro_value(RING, row) for row in rows])
    produce(broker.bootstrap, in_json, rows)

    plain = homes("json")
    configure(plain, broker.bootstrap, in_json)
    assert launcher.call(plain, "run", "config.yaml", "--max-records", str(COUNT)).returncode == 0

    killed = homes("avro")
    configure(killed, broker.bootstrap, in_avro, value_format="avro", schema_registry={"url": registry.url})
    into(killed, broker.bootstrap, out, registry)
    draw = random.Random(5)
    for crash in (f"consumed:{draw.randint(300, 700)}", "checkpoint-before-rename:1"):
        ended = launcher.call(killed, "run", "config.yaml", STREAMKERNEL_CRASH=crash)
        assert ended.returncode == -signal.SIGKILL, ended.stderr
    consumed = killed.header()["source"]["account"]["consumed"]
    ended = launcher.call(killed, "run", "config.yaml", "--max-records", str(COUNT - consumed))
    assert ended.returncode == 0, ended.stderr
    assert published_entry(killed.header()) == published_entry(plain.header())

    found = lines(broker.bootstrap, out, registry)
    expected = plain.lines("out/predictions.jsonl")
    assert [line["position"] for line in found] == [line["position"] for line in expected]
    for mine, theirs in zip(found, expected, strict=True):
        assert mine == {"std": None, "checkpoint": None, "extra": {}, "probabilities": None, **theirs}
    assert len(registry.subjects[f"{out}-value"]) == 1


def test_an_outage_is_waited_for_and_may_be_stopped(
    broker: Cluster, topic: Topics, home: Home, launcher: Launcher, registry: RegistryServer
) -> None:
    name = topic()
    produce(broker.bootstrap, name, [avro_value(RING, row) for row in rings(100)])
    configure(home, broker.bootstrap, name, value_format="avro", schema_registry={"url": registry.url})
    registry.answer = 503, b""
    daemon = launcher.start(home, "run", "config.yaml")
    daemon.wait_for("no schema registry answers .HTTP 503 Service Unavailable.: trying again until one does")
    assert "no schema registry answers" in stop(daemon)
    daemon = launcher.start(home, "run", "config.yaml")
    daemon.wait_for("no schema registry answers")
    registry.answer = None
    learned(home, 100)
    stop(daemon)
    assert home.header()["source"]["account"]["learned"] == 100


def test_check_tries_the_registry(
    broker: Cluster, topic: Topics, home: Home, launcher: Launcher, registry: RegistryServer
) -> None:
    name, out = topic(), topic()
    configure(home, broker.bootstrap, name, value_format="avro", schema_registry={"url": registry.url})
    into(home, broker.bootstrap, out, registry)
    found = launcher.call(home, "check", "config.yaml")
    assert found.returncode == 0, found.stderr
    assert f"source: schema registry {registry.url}" in found.stdout + found.stderr
    assert f"by the subject {out}-value of the schema registry {registry.url}, new" in found.stdout + found.stderr
    assert f"{out}-value" not in registry.subjects
    registry.authorization = "Bearer abc"
    found = launcher.call(home, "check", "config.yaml")
    assert found.returncode == 1
    assert (found.stdout + found.stderr).count("refuses the credentials (HTTP 401: Unauthorized)") == 2
