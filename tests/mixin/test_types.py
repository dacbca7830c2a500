"""The boards have the types of Grafana's own schema, as npm has it. No Grafana has shown them."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.daemon.conftest import program
from tests.mixin.boards import DAEMON, SERVICE

pytestmark = pytest.mark.usefixtures("processes")

TYPES = Path(__file__).with_name("types")


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the schema and a compiler, as pinned, from npm."""
    npm = program("npm", package="nodejs, npm")
    folder = tmp_path_factory.mktemp("types")
    for path in TYPES.iterdir():
        shutil.copy(path, folder)
    done = subprocess.run(
        [npm, "ci", "--no-audit", "--no-fund", "--ignore-scripts"],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    if done.returncode:
        missing = f"npm could not install the schema: {done.stderr.strip()}"
        if os.environ.get("CI"):
            pytest.fail(missing, pytrace=False)
        pytest.skip(missing)
    return folder


def test_the_boards_have_the_types_of_the_schema(installed: Path) -> None:
    for path in (DAEMON, SERVICE):
        board = json.loads(path.read_text())
        # In the text of a program, not imported: of a file the compiler forgets which texts its values are.
        text = f"import type {{ Board }} from './board';\nexport const board: Board = {json.dumps(board, indent=2)};\n"
        (installed / f"{path.stem}.ts").write_text(text)
    compiled = subprocess.run(
        ["node_modules/.bin/tsc", "--project", "."], cwd=installed, capture_output=True, text=True, check=False
    )
    assert compiled.returncode == 0, compiled.stdout + compiled.stderr
