"""`check` looks at a topic from where the checkpoint stands."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from streamkernel.daemon.assembly.plan import prepare
from streamkernel.daemon.check import check
from streamkernel.daemon.runtime import run
from tests.daemon.conftest import Home
from tests.kafka.cluster import Cluster
from tests.kafka.learning import section
from tests.kafka.producing import produce


def test_messages_whose_keys_were_renamed_behind_it_fail(
    broker: Cluster, topic: Callable[..., str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    name, home = topic(), Home(tmp_path)
    produce(broker.bootstrap, name, [{"amount": n, "y": "km"[n % 2]} for n in range(60)])
    plan = prepare(home.configure(source=section(broker.bootstrap, name, target="y")))
    run(plan, max_records=60)
    assert check(plan).bad == []
    assert not any("source.order is arrival" in line for line in check(plan).good)
    assert any("no record after the checkpoint yet" in line for line in check(plan).good)
    produce(broker.bootstrap, name, [{"betrag": n, "y": "km"[n % 2]} for n in range(60)])
    (said,) = check(plan).bad
    assert said.startswith("source: the model has learned none of the inputs that arrive ('betrag'); it knows 'amount'")
