"""What an operator watches the service by: its metrics. The board and the alerts are tried in tests/mixin."""

from __future__ import annotations

import subprocess

from prometheus_client import generate_latest

from tests.daemon.service import service_metrics


def test_promtool_finds_no_fault(promtool: str) -> None:
    checked = subprocess.run(
        [promtool, "check", "metrics"],
        input=generate_latest(service_metrics().registry),
        capture_output=True,
        check=False,
    )
    assert (checked.returncode, checked.stdout, checked.stderr) == (0, b"", b"")
