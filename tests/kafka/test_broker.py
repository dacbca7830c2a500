"""The broker of the tests is a real one: it keeps what it was given, dies when it is told to, and knows who is who."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.kafka import conftest
from tests.kafka.broker import Broker, BrokerError
from tests.kafka.distribution import Distribution, UnavailableError

_ROOT = Path(__file__).parents[2]


class TestLife:
    def test_a_broker_that_does_not_start(self, installed: Distribution, tmp_path: Path) -> None:
        refused = Broker(tmp_path / "broker", installed=installed, node_id=2)
        with pytest.raises(BrokerError, match="ended while it started"):
            refused.start()
        assert "node" in refused.log
        refused.close()
        assert not (tmp_path / "broker").exists()
        nowhere = installed._replace(java=tmp_path / "nowhere")
        with pytest.raises(BrokerError, match=r"could not be started(?s:.*)nowhere"), Broker(installed=nowhere):
            pass

    @pytest.mark.usefixtures("installed")
    def test_it_dies_with_its_owner(self, tmp_path: Path) -> None:
        program = (
            "import pathlib, sys; from tests.kafka.broker import Broker; "
            "broker = Broker(pathlib.Path(sys.argv[1])); broker.start(); print(broker.pid, flush=True); input()"
        )
        owner = subprocess.Popen(
            [sys.executable, "-c", program, tmp_path / "broker"],
            cwd=_ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        assert owner.stdout is not None
        pid = int(owner.stdout.readline())
        os.kill(pid, 0)
        owner.send_signal(signal.SIGKILL)
        owner.communicate()
        for _ in range(3000):
            try:
                os.kill(pid, 0)
            except ProcessLookupError:
                return
            time.sleep(0.01)
        raise AssertionError("the broker outlives its owner")


class TestWithout:
    @pytest.mark.parametrize(("ci", "outcome"), [("", pytest.skip.Exception), ("true", pytest.fail.Exception)])
    def test_tests_skip_or_fail(self, monkeypatch: pytest.MonkeyPatch, ci: str, outcome: type[BaseException]) -> None:
        def missing() -> Distribution:
            raise UnavailableError("no jars")

        monkeypatch.setattr(conftest, "distribution", missing)
        monkeypatch.setenv("CI", ci)
        with pytest.raises(outcome, match="no jars"):
            conftest.find_installed()
