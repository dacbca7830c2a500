"""A member of a consumer group whose brokers are away for hours."""

from __future__ import annotations

import pytest

from connectors.kafka.base.client import Unreachable
from connectors.kafka.group import membership as module
from connectors.kafka.group.membership import Membership
from connectors.ports import ConnectorError, SourceError


def test_very_many_attempts_do_not_end_it(monkeypatch: pytest.MonkeyPatch) -> None:
    attempts = []

    def connect(_: str, __: object, attempt: int) -> None:
        attempts.append(attempt)
        raise Unreachable("it is down") if attempt < 1100 else ConnectorError("the credentials are wrong")

    monkeypatch.setattr(module, "KafkaTopic", connect)
    monkeypatch.setattr(module, "LONGEST_PAUSE", 0.0)
    member = Membership("clicks", "broker:9092", "mine")
    member.open()
    with pytest.raises(SourceError, match="the credentials are wrong"):
        member.turn(30.0)
    member.close(1.0)
    assert attempts == [*range(1101)]
