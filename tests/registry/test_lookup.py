"""Looking up in a registry: once, for as long as it takes, and with an end where there is none."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import NamedTuple

import pytest

from streamkernel.connectors.ports import ConnectorError
from streamkernel.connectors.registry import lookup as lookup_module
from streamkernel.connectors.registry.client import (
    RegisteredSchema,
    RegistryClient,
    RegistryOutage,
    UnknownSchemaError,
    UnusableSchemaError,
)
from streamkernel.connectors.registry.lookup import FailedLookupError, RegistryLookup
from streamkernel.connectors.registry.settings import RegistrySettings


class Thing(NamedTuple):
    """What is found."""

    key: int


@pytest.fixture(autouse=True)
def hurry(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lookup_module, "FIRST_PAUSE", 0.001)
    monkeypatch.setattr(lookup_module, "LONGEST_PAUSE", 0.005)


@contextmanager
def looking(find: Callable[[int], Thing], unknown_seconds: float = 60.0) -> Iterator[RegistryLookup[int, Thing]]:
    lookup = RegistryLookup("here", find, unknown_seconds)
    try:
        yield lookup
    finally:
        lookup.close()


def found(lookup: RegistryLookup[int, Thing], key: int) -> Thing:
    deadline = time.monotonic() + 20
    while (thing := lookup.get(key)) is None:
        assert time.monotonic() < deadline
        lookup.wait(1)
    return thing


class TestLookup:
    def test_an_outage_is_waited_for(self, caplog: pytest.LogCaptureFixture) -> None:
        caplog.set_level(logging.INFO)
        errors: list[Exception] = [RegistryOutage("connection refused")] * 5
        again = threading.Event()

        def find(key: int) -> Thing:
            if errors:
                raise errors.pop()
            assert again.wait(20)
            return Thing(key)

        with looking(find) as lookup:
            lookup.get(7)
            deadline = time.monotonic() + 20
            while errors and time.monotonic() < deadline:
                lookup.wait(0.001)
            assert lookup.health_problem == "schema id 7 is not known yet (no answer: connection refused)"
            again.set()
            assert found(lookup, 7) == Thing(7)
            assert lookup.health_problem is None
        assert [record.getMessage().partition(" after ")[0] for record in caplog.records] == [
            "here: no schema registry answers (connection refused): trying again until one does",
            "here: answered",
        ]

    @pytest.mark.parametrize(
        ("error", "final", "said"),
        [
            (
                UnknownSchemaError("Schema 7 not found"),
                False,
                r"does not know schema id 7 \(Schema 7 not found\): register it, or check schema_registry.url",
            ),
            (UnusableSchemaError("it is bad"), False, "schema id 7 cannot be used: it is bad"),
            (KeyError("x"), False, "schema id 7 cannot be used: KeyError: 'x'"),
            (RecursionError("deep"), False, "schema id 7 cannot be used: RecursionError: deep"),
            (ConnectorError("it refuses"), True, "it refuses"),
        ],
    )
    def test_what_will_not_come(self, error: Exception, final: bool, said: str) -> None:
        def find(_: int) -> Thing:
            raise error

        with looking(find, unknown_seconds=0.05) as lookup:
            with pytest.raises(FailedLookupError, match=said) as raised:
                found(lookup, 7)
            assert raised.value.final is final

    def test_what_is_kept_is_bounded(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(lookup_module, "MOST_KEPT", 3)
        asked: list[int] = []
        with looking(lambda key: asked.append(key) or Thing(key)) as lookup:
            for key in (1, 2, 3, 1, 4, 2, 1):  # 1 is the oldest when 4 comes
                found(lookup, key)
            assert asked == [1, 2, 3, 4, 1]


class FakeClient(RegistryClient):
    """Schemas by subject."""

    def __init__(self, **schemas: RegisteredSchema) -> None:
        super().__init__(RegistrySettings("http://a"))
        self.schemas = schemas
        self.asked: list[str] = []

    def version(self, subject: str, *_: object) -> RegisteredSchema:
        self.asked.append(subject)
        return self.schemas[subject]


def refers(*subjects: str) -> RegisteredSchema:
    return RegisteredSchema("AVRO", "{}", tuple((f"n-{one}", one, 1) for one in subjects))


class TestReferences:
    def test_each_comes_after_those_it_needs(self) -> None:
        client = FakeClient(a=refers("c"), b=refers("c"), c=refers())
        assert list(client.texts(refers("a", "b"))) == ["n-c", "n-a", "n-b", ""]
        assert client.asked == ["a", "c", "b"]

    def test_circles_and_crowds(self) -> None:
        many = [f"s{number}" for number in range(201)]
        for main, schemas in [
            (refers("a"), {"a": refers("b"), "b": refers("a")}),
            (refers(*many), dict.fromkeys(many, refers())),
        ]:
            with pytest.raises(UnusableSchemaError, match="round in a circle, or are too many"):
                FakeClient(**schemas).texts(main)
