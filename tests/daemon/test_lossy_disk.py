"""A disk that fails once and then says that all is well: no checkpoint speaks of what it lost."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.daemon.conftest import Home, Launcher
from tests.daemon.outputs import configured, with_short_stream

pytestmark = pytest.mark.usefixtures("processes")

JSON_LINES = {"kind": "jsonl", "path": "out/predictions.jsonl"}
PARTS = {"kind": "parquet", "path": "out/predictions", "roll_seconds": 3600}


@pytest.fixture(scope="module")
def lossy(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Launcher]:
    """Daemons whose `fsync` is that of a disk which fails once."""
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("cc is not installed")
    folder = tmp_path_factory.mktemp("lossy")
    library, source = folder / "lossy_disk.so", Path(__file__).with_name("lossy_disk.c")
    subprocess.run([compiler, "-shared", "-fPIC", "-O1", "-o", library, source, "-ldl"], check=True)
    started = Launcher(folder, LD_PRELOAD=str(library), FAIL_AT="0", CALLS=str(folder / "calls"))
    yield started
    started.close()


def outputs(home: Home) -> dict[str, bytes]:
    files = sorted(path for path in (home.folder / "out").rglob("*") if path.is_file() and path.parent.name != "state")
    return {str(path.relative_to(home.folder)): path.read_bytes() for path in files}


@pytest.mark.parametrize("predictions", [JSON_LINES, PARTS], ids=["lines", "parts"])
def test_a_sync_that_fails_once(home: Home, lossy: Launcher, predictions: dict[str, Any]) -> None:
    with_short_stream(home)
    configured(home, predictions=predictions, checkpoint={"directory": "out/state", "every_records": 200})
    calls = home.folder / "calls"
    whole = lossy.call(home, "run", "config.yaml", CALLS=str(calls))
    assert whole.returncode == 0, whole.stderr
    expected = outputs(home)
    assert expected
    ended = 0
    for number in range(1, len(calls.read_text().split()) + 1):
        shutil.rmtree(home.folder / "out")
        run = lossy.call(home, "run", "config.yaml", FAIL_AT=str(number), CALLS=str(calls))
        if run.returncode:
            assert run.returncode == 1, run.stderr
            lost = re.search(r"out/.*: did not reach the disk \(Input/output error\)", run.stderr) is not None
            assert lost or re.search("the run did not start|the last part is incomplete: the", run.stderr), run.stderr
            ended += lost
        if " error " in run.stderr:  # also where the last part could not be made of rows that are saved
            again = lossy.call(home, "run", "config.yaml")
            assert again.returncode == 0, again.stderr
        assert outputs(home) == expected, f"call {number} of fsync failed: {run.stderr}"
    assert ended > (2 if predictions is JSON_LINES else 0)  # rows in memory are written again
