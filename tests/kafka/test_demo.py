"""`make kafka-demo`: a broker, a stream and the daemon, and the account at the end."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.kafka.listeners import free_listeners

ROOT = Path(__file__).parents[2]


@pytest.mark.usefixtures("installed")
def test_it_ends_cleanly_with_every_record_predicted() -> None:
    port = str(free_listeners().plaintext)
    command = [sys.executable, "-m", "examples.kafka_demo", "--rate", "400", "--seconds", "4", "--port", port]
    ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120, check=False)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    told = re.search(r"produced ([\d,]+), predicted ([\d,]+)$", ended.stdout.strip())
    assert told is not None, ended.stdout
    assert told[1] == told[2] != "0"
    assert "Traceback" not in ended.stderr
