"""Late labels over a real broker: records and labels in topics, kills at any moment, each record learned once."""

from __future__ import annotations

import json
import random
import signal
import time
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

from streamkernel.daemon.run_state.models import published_entry
from tests.daemon.conftest import Home, Launcher, Running
from tests.daemon.labels_stream import adds_up
from tests.kafka.cluster import Cluster
from tests.kafka.learning import section
from tests.kafka.producing import consume, produce

Topics = Callable[..., str]
RECORDS = 6000
LABELED = 5000


def configure(home: Home, broker: Cluster, topics: dict[str, str], **labels: Any) -> None:
    def at(name: str, **more: Any) -> dict[str, Any]:
        return section(broker.bootstrap, topics[name], **more)

    home.configure(
        source=at("records"),
        labels={"source": at("labels", target="y"), "key": "id", "max_pending": 20_000, **labels},
        model=[{"streamkernel.KernelClassifier": {"seed": 1, "max_features": 64}}],
        predictions=at("predictions"),
        dead_letters=at("dead"),
        checkpoint={"directory": "out/state", "every_records": 700, "every_seconds": 0.3},
    )


def wait_until(home: Home, daemon: Running, holds: Callable[[dict[str, Any]], bool]) -> None:
    deadline = time.monotonic() + 60
    while not (list((home.folder / "out/state").glob("*.skc")) and holds(home.header())):
        assert time.monotonic() < deadline, daemon.log
        time.sleep(0.05)


@pytest.mark.parametrize("kills", [4, pytest.param(10, marks=pytest.mark.long)])
def test_each_record_is_predicted_and_learned_once_whatever_kills_it(
    broker: Cluster, topic: Topics, home: Home, launcher: Launcher, kills: int
) -> None:
    topics = {name: topic(partitions=2 if name == "records" else 1) for name in ("records", "labels", "predictions")}
    topics["dead"] = topic()
    draw = random.Random(1)
    xs = [{"id": f"k{i}", "a": draw.gauss(0, 1), "b": draw.gauss(0, 1)} for i in range(RECORDS)]
    labels: list[Any] = [{"id": x["id"], "y": "yes" if x["a"] * x["b"] > 0 else "no"} for x in xs[:LABELED]]
    bad = [b"{", {"id": "k1"}, {"y": "yes"}]
    configure(home, broker, topics)
    produce(broker.bootstrap, topics["records"], xs[:3000], partition=lambda number: number % 2)
    produce(broker.bootstrap, topics["labels"], [*labels[:2000], *bad, *labels[:50]])
    for kill in range(kills):
        if kill == kills // 2:
            produce(broker.bootstrap, topics["records"], xs[3000:], partition=lambda number: number % 2)
            produce(broker.bootstrap, topics["labels"], labels[2000:])
        daemon = launcher.start(home, "run", "config.yaml")
        daemon.wait_for("from label")
        time.sleep(draw.random() * 0.5)
        daemon.signal(signal.SIGKILL)
        assert daemon.wait().returncode == -signal.SIGKILL
        adds_up(home.header())
    daemon = launcher.start(home, "run", "config.yaml")
    daemon.wait_for("from label")
    wait_until(home, daemon, lambda header: header["source"]["account"]["learned"] == LABELED)
    wait_until(home, daemon, lambda header: header["source"]["account"]["consumed"] == RECORDS)
    daemon.signal(signal.SIGTERM)
    ended = daemon.wait()
    assert ended.returncode == 0, ended.stderr
    header = home.header()
    adds_up(header)
    late = header["labels"]
    assert (late["pending"], late["account"]["expired"]) == (RECORDS - LABELED, 0)
    assert (late["account"]["doubled"], late["account"]["dead"]) == (50, 3)
    assert published_entry(header)["n_records"] == LABELED
    predicted = Counter(
        (line["position"]["partition"], line["position"]["offset"])
        for line in (json.loads(one.value) for one in consume(broker.bootstrap, topics["predictions"])[0])
    )
    assert set(predicted.values()) == {1}
    assert set(predicted) == {(partition, offset) for partition in (0, 1) for offset in range(RECORDS // 2)}
    dead = [json.loads(one.value) for one in consume(broker.bootstrap, topics["dead"])[0]]
    assert [(line["reason"], line["position"]["source"]) for line in dead] == [
        ("not_json", "labels"),
        ("target", "labels"),
        ("key", "labels"),
    ]


def test_the_key_of_the_message_may_join_them(broker: Cluster, topic: Topics, home: Home, launcher: Launcher) -> None:
    topics = {name: topic() for name in ("records", "labels", "predictions", "dead")}
    configure(home, broker, topics, key="kafka.key")
    settings = home.config.read_text().replace("kind: kafka\n", "kind: kafka\n  include: [key]\n", 1)
    home.config.write_text(settings.replace("    kind: kafka\n", "    kind: kafka\n    include: [key]\n", 1))
    keys: Callable[[int], bytes] = lambda number: b"message %d" % number  # noqa: E731
    produce(broker.bootstrap, topics["records"], [{"a": number} for number in range(500)], keys=keys)
    produce(broker.bootstrap, topics["labels"], [{"y": "pq"[number % 2]} for number in range(500)], keys=keys)
    daemon = launcher.start(home, "run", "config.yaml")
    wait_until(home, daemon, lambda header: header["source"]["account"]["learned"] == 500)
    daemon.signal(signal.SIGTERM)
    ended = daemon.wait()
    assert ended.returncode == 0, ended.stderr
    assert "records and labels are learned as" in ended.stderr
    adds_up(home.header())
