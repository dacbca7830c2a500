"""A source that stalls for real: a producer's transaction stays open, and the alert comes and goes with it."""

from __future__ import annotations

import signal
from collections.abc import Callable
from pathlib import Path

import orjson
import pytest
from kafka import KafkaProducer

from tests.daemon.conftest import Home, Launcher, program
from tests.kafka.cluster import Cluster
from tests.kafka.producing import produce
from tests.kafka.test_shown import SERVING, configure, rings
from tests.mixin.hurried import hurried_rules, wait_until_clear, wait_until_fired
from tests.mixin.scraping import prometheus

STALLED = "StreamkernelSourceStalled"
OTHERS = {"StreamkernelRestarting", "StreamkernelDeadLetters", "StreamkernelCheckpointFailing"}


@pytest.mark.long
def test_a_source_that_stalls(
    broker: Cluster, topic: Callable[..., str], home: Home, launcher: Launcher, tmp_path: Path
) -> None:
    installed = program("prometheus")
    name = topic()
    produce(broker.bootstrap, name, rings(100))
    configure(home, broker, name)
    daemon = launcher.start(home, "run", "config.yaml")
    address = daemon.wait_for(SERVING)[1]
    producer = KafkaProducer(bootstrap_servers=broker.bootstrap, transactional_id=f"stalls-{name}")
    producer.init_transactions()
    with prometheus(installed, tmp_path, [address], hurried_rules(tmp_path)) as url:
        wait_until_clear(url, {STALLED})
        producer.begin_transaction()
        for row in rings(50):
            producer.send(name, orjson.dumps(row))
        producer.flush()
        wait_until_fired(url, {STALLED}, OTHERS)
        producer.commit_transaction()
        wait_until_clear(url, {STALLED})
    producer.close()
    daemon.signal(signal.SIGTERM)
    assert daemon.wait().returncode == 0
