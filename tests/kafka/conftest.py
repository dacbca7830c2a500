"""A real broker for the tests, or the one of KAFKA_BOOTSTRAP.

All workers of pytest-xdist share one, each test with topics of its own. Tests that pause or kill a broker have another.
"""

from __future__ import annotations

import logging
import os
import re
import uuid
from collections.abc import Callable, Generator, Iterator

import pytest
from kafka.errors import UnknownTopicOrPartitionError

from tests.chaos.proxy import Proxy
from tests.daemon.conftest import home, homes, launcher  # noqa: F401 - for the daemons of these tests
from tests.kafka.broker import Broker
from tests.kafka.cluster import Cluster
from tests.kafka.distribution import Distribution, UnavailableError, distribution
from tests.kafka.shared import shared_broker

_ELSEWHERE = os.environ.get("KAFKA_BOOTSTRAP")


@pytest.fixture(autouse=True)
def quiet_client() -> Iterator[None]:
    """Leave kafka-python's own lines out of what a test sees, also where a daemon of this process raised the level."""
    client = logging.getLogger("kafka")
    before = client.level
    client.setLevel(logging.WARNING)
    yield
    client.setLevel(before)


@pytest.fixture(scope="session")
def installed() -> Distribution:
    """What a broker needs; looked for once, because looking in vain may take long."""
    return find_installed()


def find_installed() -> Distribution:
    try:
        return distribution()
    except UnavailableError as error:
        missing = str(error)
    if os.environ.get("CI"):
        pytest.fail(missing, pytrace=False)
    pytest.skip(missing)


@pytest.fixture(scope="session")
def broker(request: pytest.FixtureRequest) -> Cluster:
    """A broker for everybody: not to be stopped, paused or killed."""
    return Cluster(_ELSEWHERE) if _ELSEWHERE else request.getfixturevalue("_started")


@pytest.fixture(scope="session")
def local_broker(request: pytest.FixtureRequest) -> Broker:
    """The same, for tests that need its files or its doors with locks."""
    if _ELSEWHERE:
        pytest.skip("needs the files or the listeners of a broker of the tests' own: unset KAFKA_BOOTSTRAP")
    started: Broker = request.getfixturevalue("_started")
    return started


@pytest.fixture(scope="session")
def _started(tmp_path_factory: pytest.TempPathFactory, installed: Distribution) -> Iterator[Broker]:
    # Below pytest's own folders, which are cleared some day even if this process is killed.
    folder = tmp_path_factory.getbasetemp()
    with shared_broker((folder.parent if "PYTEST_XDIST_WORKER" in os.environ else folder) / "broker", installed) as one:
        yield one


@pytest.fixture(scope="package")
def _breakable(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Broker, Proxy]]:
    """One broker that several tests take away, one after the other, and a network before it."""
    if _ELSEWHERE:
        pytest.skip("does things to a broker that only one of the tests' own may suffer: unset KAFKA_BOOTSTRAP")
    installed, folder = request.getfixturevalue("installed"), tmp_path_factory.mktemp("breakable")
    with Proxy() as network, Broker(folder / "broker", installed=installed, detour=network.port) as broker:
        network.target = broker.behind
        yield broker, network


@pytest.fixture
def own_broker(_breakable: tuple[Broker, Proxy]) -> Broker:
    """A broker that runs, is well, and that the test may do anything to."""
    broker, _ = _breakable
    broker.resume()
    if not broker.alive:
        broker.start()
    return broker


@pytest.fixture
def own_network(_breakable: tuple[Broker, Proxy]) -> Iterator[Proxy]:
    """A network before `own_broker` that flows, and that the test may do anything to."""
    _, network = _breakable
    yield network
    network.flow()


@pytest.fixture
def topic(request: pytest.FixtureRequest) -> Iterator[Callable[..., str]]:
    """Make topics with names of their own: ``topic(partitions=1, on=None, **config)``."""
    made: list[tuple[Cluster, str]] = []
    test = re.sub(r"[^a-zA-Z0-9]+", "-", request.node.name)[:80]

    def make(partitions: int = 1, on: Cluster | None = None, **config: object) -> str:
        name = f"{test}-{uuid.uuid4().hex[:8]}"
        cluster = on or request.getfixturevalue("broker")
        cluster.create_topic(name, partitions, **config)
        if on is None:  # one of the test's own may be down, and is thrown away anyhow
            made.append((cluster, name))
        return name

    yield make
    for cluster, name in made:
        try:
            cluster.delete_topic(name)
        except UnknownTopicOrPartitionError:
            continue  # the test did it


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Add what the broker said to the report of a test that failed."""
    report = yield
    if report.failed:
        used = {id(each): each for each in getattr(item, "funcargs", {}).values() if isinstance(each, Broker)}
        report.sections += [("the Kafka broker's log", each.log[-4000:]) for each in used.values() if each.log]
    return report
