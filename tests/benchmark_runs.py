"""Quick runs of the benchmarks as a reader starts them."""

import os
import subprocess
import sys
from pathlib import Path

_ROOT = Path(__file__).parent.parent


def run_quickly(module, *arguments):
    """Run a benchmark with --quick; it must end well, and warn of nothing."""
    done = subprocess.run(
        [sys.executable, "-m", f"benchmarks.{module}", "--quick", *map(str, arguments)],
        cwd=_ROOT,
        env={**os.environ, "PYTHONWARNINGS": "error"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
