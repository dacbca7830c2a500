"""`--fresh` with a topic that refuses: told as `check` tells it, before anything is set aside."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from streamkernel.daemon.assembly.plan import prepare
from streamkernel.daemon.runtime import run
from tests.daemon.conftest import Home, Launcher, write_stream
from tests.daemon.test_fresh import contents
from tests.kafka.broker import Broker
from tests.kafka.learning import section
from tests.kafka.listeners import GUEST, login

MakeTopic = Callable[..., str]


@pytest.mark.parametrize(
    ("output", "refusal"),
    [
        ("dead_letters", "read only"),
        *(
            pytest.param(*one, marks=pytest.mark.long)
            for one in (("predictions", "read only"), ("dead_letters", "not there"), ("predictions", "not there"))
        ),
    ],
)
def test_an_output_that_refuses(
    local_broker: Broker,
    topic: MakeTopic,
    home: Home,
    launcher: Launcher,
    monkeypatch: pytest.MonkeyPatch,
    output: str,
    refusal: str,
) -> None:
    write_stream(home.folder / "stream.csv", 300)
    monkeypatch.chdir(home.folder)
    run(prepare(home.configure()))
    written = section(local_broker.bootstrap, "nowhere")
    if refusal == "read only":
        written = section(local_broker.sasl, topic(), options=login())
        local_broker.allow(GUEST[0], "read", "describe", topic=written["topic"])
    home.configure(**{output: written})
    before = contents(home.folder)
    checked = launcher.call(home, "check", "config.yaml")
    done = launcher.call(home, "run", "config.yaml", "--fresh")
    assert (checked.returncode, done.returncode) == (1, 1), (checked.stderr, done.stderr)
    last = done.stderr.splitlines()[-1]
    said = last.partition("error")[2].strip()
    assert f"kafka topic {written['topic']} at" in said
    assert said in checked.stderr + checked.stdout
    assert contents(home.folder) == before
