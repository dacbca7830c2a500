"""The command line: what each command prints, its status, and that a mistake is a line and no traceback."""

from __future__ import annotations

import contextlib
import json
import os
import pty
import re
import signal
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pytest

from streamkernel.daemon.config.schema import Config
from streamkernel.daemon.run_state.models import published_entry
from tests.daemon.conftest import Home, Launcher, write_stream


@pytest.fixture
def here(home: Home) -> Home:
    write_stream(home.folder / "stream.csv", 1200)
    home.configure()
    return home


def test_check_tries_everything_and_starts_nothing(here: Home, launcher: Launcher) -> None:
    here.configure(metrics={"port": 0})
    ended = launcher.call(here, "check", "config.yaml")
    assert ended.returncode == 0
    source, *others = ended.stdout.splitlines()
    assert source.startswith(
        "source: csv file stream.csv; 3 of its first 49 records cannot be used; the first, at line 36"
    )
    assert others == [
        "checkpoint: out/state, none yet",
        "predictions: out/predictions.jsonl",
        "dead_letters: out/dead.jsonl",
        "metrics: 127.0.0.1:0, any free port",
        "columns of source, by its first record:",
        "  y      'yes'        string  target 'yes'",
        "  a      '0.052192'   number  input a=0.052192",
        "  b      '-1.043409'  number  input b=-1.04341",
        "  color  'green'      string  input",
        "config.yaml is fine",
    ]
    assert sorted(path.name for path in here.folder.iterdir()) == ["config.yaml", "stream.csv"]
    launcher.call(here, "run", "config.yaml", "--max-records", "600")
    again = launcher.call(here, "check", "config.yaml")
    assert "checkpoint: out/state, a run continues from number 2, record 600" in again.stdout


def test_check_says_all_that_would_fail(here: Home, launcher: Launcher) -> None:
    (here.folder / "out").write_text("a file where a folder should be")
    here.configure(source={"kind": "csv", "path": "missing.csv", "target": "y"})
    ended = launcher.call(here, "check", "config.yaml")
    assert ended.returncode == 1
    assert ended.stderr.startswith("error: missing.csv")
    assert [line.split(":")[1].strip() for line in ended.stderr.splitlines()[1:]] == [
        "out/state/lock",
        "out/predictions.jsonl",
        "out/dead.jsonl",
    ]
    assert "Traceback" not in ended.stderr


def test_check_says_what_is_not_promised(here: Home, launcher: Launcher) -> None:
    here.configure(
        source={"kind": "csv", "path": "-", "target": "y"},
        predictions={"kind": "jsonl", "path": "-"},
        dead_letters=None,
    )
    ended = launcher.call(here, "check", "config.yaml")
    assert ended.returncode == 0
    assert "source: standard input, not tried" in ended.stdout
    assert "csv from standard input cannot be resumed" in ended.stdout
    assert "predictions cannot be truncated: after" in ended.stdout
    assert "dead_letters are off" in ended.stdout


def test_a_run_ends_with_a_table_and_inspect_shows_what_is_left(here: Home, launcher: Launcher) -> None:
    here.configure(log={"format": "json", "level": "debug"}, metrics={"port": 0})
    ended = launcher.call(here, "run", "config.yaml")
    assert ended.returncode == 0
    for row in (
        "records", "accuracy", "accuracy of the majority class", "macro f1", "log loss, all records",
        "log loss of the class shares", "progressive loss, last 1,000", "features", "blocks grown, reused",
    ):  # fmt: skip
        assert re.search(rf"^ +{row} +[\d.,]", ended.stdout, re.MULTILINE), row
    assert re.search(r"account: consumed +1,200", ended.stdout)
    assert "records/s" in ended.stdout
    lines = [json.loads(line) for line in ended.stderr.splitlines()]
    assert {"time", "level", "logger", "message"} <= set(lines[0])
    assert any(line["message"].startswith("checkpoint checkpoint-000000000001.skc at record 500") for line in lines)
    described = json.loads(launcher.call(here, "inspect", "out/state", "--json").stdout)
    assert described["source"]["account"]["consumed"] == 1200
    assert re.fullmatch(r"[0-9a-f]{64}", published_entry(described)["state_digest"])
    assert published_entry(described)["n_features"] > 0
    assert described["source"]["positions"][0][2] == (here.folder / "stream.csv").stat().st_size
    assert set(described["run"]["versions"]) == {"streamkernel", "river", "numpy", "python"}
    one = launcher.call(here, "inspect", described["file"], "--json")
    assert json.loads(one.stdout)["payload_sha256"] == described["payload_sha256"]
    table = launcher.call(here, "inspect", "out/state").stdout
    assert re.search(r"^records +consumed 1,200, ", table, re.MULTILINE)
    for missing in ("out", "nowhere", "stream.csv"):
        ended = launcher.call(here, "inspect", missing)
        assert ended.returncode == 1
        assert len(ended.stderr.splitlines()) == 1
        assert missing in ended.stderr


def test_schema(here: Home, launcher: Launcher) -> None:
    ended = launcher.call(here, "schema")
    printed = json.loads(ended.stdout)
    assert printed.pop("$schema").startswith("https://json-schema.org/")
    assert printed == Config.model_json_schema()


@pytest.mark.parametrize(
    "arguments", [["run"], ["run", "config.yaml", "--max-records", "-1"], ["run", "config.yaml", "--frsh"], ["rnu"]]
)
def test_a_bad_command_line_has_status_2(here: Home, launcher: Launcher, arguments: list[str]) -> None:
    ended = launcher.call(here, *arguments)
    assert ended.returncode == 2
    assert "Traceback" not in ended.stderr


def test_an_unexpected_failure_is_one_line_too(here: Home, launcher: Launcher) -> None:
    (here.folder / "failing.py").write_text(
        "from river import dummy\n"
        "class Failing(dummy.PriorClassifier):\n"
        "    def predict_proba_one(self, x):\n        raise MemoryError('no more')\n"
    )
    here.configure(model=["failing.Failing"], imports=["failing"])
    ended = launcher.call(here, "run", "config.yaml")
    assert ended.returncode == 1
    assert "Traceback" not in ended.stderr
    assert ended.stderr.splitlines()[-1].endswith("error   unexpected MemoryError: no more")
    here.configure(model=["failing.Failing"], imports=["failing"], log={"level": "debug"})
    assert "Traceback" in launcher.call(here, "run", "config.yaml").stderr


def test_a_progress_bar_where_standard_error_is_a_terminal(here: Home, launcher: Launcher) -> None:
    ours, inside = pty.openpty()
    terminal = Path(os.ttyname(inside))
    daemon = launcher.start(here, "run", "config.yaml", terminal=terminal, TERM="xterm-256color", COLUMNS="160")
    shown = b""
    while b"the source is exhausted" not in shown:
        shown += os.read(ours, 65536)
    os.close(inside)
    with contextlib.suppress(OSError):  # Linux says so when nobody is left on the other side
        while piece := os.read(ours, 65536):
            shown += piece
    os.close(ours)
    assert launcher.ask({"wait": daemon.pid}) == 0
    assert re.search(rb"[\d,]+ records/s +loss \d\.\d+ +[\d,]+ features +[\d,]+ dead letters", shown)


@pytest.mark.usefixtures("processes")
def test_a_closed_pipe_ends_it_quietly(here: Home) -> None:
    process = here.start("schema")
    assert process.stdout is not None
    process.stdout.close()
    assert process.stderr is not None
    assert "Traceback" not in process.stderr.read()
    process.stderr.close()
    assert process.wait() in (0, 1, -signal.SIGPIPE)


IMPORTED = """
import sys
from streamkernel.daemon.cli import main

for arguments in (["--help"], ["schema"], ["check", "config.yaml"], ["run", "config.yaml"]):
    assert main(arguments) == 0
    print(" ".join(sys.modules), file=sys.stderr)
"""


@pytest.mark.usefixtures("processes")
def test_nothing_is_imported_that_is_not_needed(here: Home) -> None:
    """One process for four commands: what one of them imports is still there after the next."""
    ended = subprocess.run(
        [sys.executable, "-c", IMPORTED], cwd=here.folder, capture_output=True, text=True, check=True
    )
    loaded = [set(line.split()) for line in ended.stderr.splitlines() if line.startswith("sys ")]
    of_help, of_schema, of_check, of_run = loaded
    assert of_help <= of_schema <= of_check
    assert not of_check & {"matplotlib", "sklearn", "river.datasets", "pandas", "scipy.stats"}
    assert not of_schema & {
        "streamkernel.daemon.runtime",
        "streamkernel.connectors.river",
        "rich.progress",
        "prometheus_client",
    }
    # Of other extras than the daemon's.
    assert not of_run & {"crc32c", "fastavro", "kafka", "lz4", "matplotlib", "pandas", "pyarrow"}
    assert "rich.progress" not in of_run  # without a terminal
    assert not of_run & {"anyio", "httptools", "starlette", "uvicorn"}  # without metrics


PLAIN_RUN = """
import sys
from streamkernel.daemon.cli import main

assert main(["run", "config.yaml", "--fresh"]) == 0
print(*sys.modules, file=sys.stderr)
"""

NOT_OF_A_PLAIN_RUN = {
    *("numba.np.arrayobj", "numpy.f2py", "numpy.testing", "scipy.sparse", "scipy.special", "sqlite3"),
    *("streamkernel.gaussian_process", "streamkernel.growth", "streamkernel.window"),
}


@pytest.mark.usefixtures("processes")
def test_a_plain_run_imports_no_more_than_it_needs(here: Home) -> None:
    """The first run may have to compile, which asks for more."""
    here.configure(model=["streamkernel.AdaptiveKernelClassifier"])
    for _ in range(2):
        ended = subprocess.run(
            [sys.executable, "-c", PLAIN_RUN], cwd=here.folder, capture_output=True, text=True, check=True
        )
    assert NOT_OF_A_PLAIN_RUN.intersection(ended.stderr.splitlines()[-1].split()) == set()


def test_the_version(home: Home, launcher: Launcher) -> None:
    ended = launcher.call(home, "--version")
    assert (ended.returncode, ended.stdout) == (0, f"streamkernel {version('streamkernel')}\n")


@pytest.mark.parametrize(
    ("words", "number", "found"),
    [
        ("streamkernel ev", "1", {"evaluate"}),
        ("streamkernel run --fr", "2", {"--fresh"}),
        ("streamkernel run --se", "2", {"--set"}),
        ("streamkernel completion z", "2", {"zsh"}),
    ],
)
def test_commands_and_options_are_completed(
    home: Home, launcher: Launcher, words: str, number: str, found: set[str]
) -> None:
    asked = {"COMP_WORDS": words, "COMP_CWORD": number, "_STREAMKERNEL_COMPLETE": "complete_bash"}
    ended = launcher.call(home, **asked)
    assert ended.returncode == 0
    assert set(ended.stdout.split()) == found
