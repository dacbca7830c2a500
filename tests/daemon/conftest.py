"""Streams, configurations and daemons for the tests of the daemon."""

from __future__ import annotations

import contextlib
import json
import os
import random
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from streamkernel.daemon.run_state.models import published_entry

_ROOT = Path(__file__).parents[2]


def program(name: str, package: str = "prometheus") -> str:
    """Find a program of a package of Debian's; without it a test is skipped, but for CI, where it fails."""
    found = shutil.which(name)
    if found is not None:
        return found
    missing = f"{name} is not installed (Debian: {package})"
    if os.environ.get("CI"):
        pytest.fail(missing, pytrace=False)
    pytest.skip(missing)


@pytest.fixture(scope="session")
def promtool() -> str:
    """What checks metrics and rules."""
    return program("promtool")


class Home:
    """A folder with a configuration, and the daemon at work in it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.config = folder / "config.yaml"
        self.every_records = 500

    def configure(self, **sections: Any) -> Path:
        """Write a configuration that keeps everything below the folder and serves no metrics."""
        settings: dict[str, Any] = {
            "source": {"kind": "csv", "path": "stream.csv", "target": "y"},
            "model": [{"streamkernel.KernelClassifier": {"seed": 1, "max_features": 256}}],
            "predictions": {"kind": "jsonl", "path": "out/predictions.jsonl"},
            "dead_letters": {"kind": "jsonl", "path": "out/dead.jsonl"},
            "checkpoint": {"directory": "out/state", "every_records": self.every_records},
            "metrics": None,
        }
        settings.update(sections)
        self.config.write_text(yaml.safe_dump(settings, sort_keys=False))
        return self.config

    def environment(self, **extra: str) -> dict[str, str]:
        return {**os.environ, "PYTHONPATH": f"{_ROOT}{os.pathsep}{self.folder}", "PYTHONWARNINGS": "default", **extra}

    def start(self, *arguments: str, stdin: int | None = None, **environment: str) -> subprocess.Popen[str]:
        """Start the command line in a process of its own, which by default has the standard input of this one."""
        return subprocess.Popen(
            [sys.executable, "-m", "streamkernel", *arguments],
            cwd=self.folder,
            env=self.environment(**environment),
            stdin=stdin,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def call(self, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
        """Run the command line to its end."""
        process = self.start(*arguments, **environment)
        out, err = process.communicate(timeout=120)
        return subprocess.CompletedProcess(arguments, process.returncode, out, err)

    def lines(self, name: str) -> list[dict[str, Any]]:
        return [json.loads(line) for line in (self.folder / name).read_text().splitlines()]

    def header(self, directory: str = "out/state") -> dict[str, Any]:
        """Read what the newest checkpoint says."""
        from streamkernel.daemon.monitoring.inspection import describe

        return describe(self.folder / directory)

    def result(self) -> tuple[Any, ...]:
        """Everything a run that was killed must have in common with one that was not."""
        header = self.header()
        return (
            published_entry(header),
            (self.folder / "out/predictions.jsonl").read_bytes(),
            (self.folder / "out/dead.jsonl").read_bytes(),
            header["source"]["account"],
            header["source"]["positions"],
        )


class Running:
    """A daemon at work, made by the launcher."""

    def __init__(self, launcher: Launcher, pid: int, out: Path, err: Path) -> None:
        self._launcher = launcher
        self._out = out
        self._err = err
        self.pid = pid

    @property
    def log(self) -> str:
        return self._err.read_text()

    @property
    def output(self) -> str:
        return self._out.read_text()

    def wait_for(self, text: str) -> re.Match[str]:
        """Wait until a line of the log holds a pattern."""
        for _ in range(6000):
            found = re.search(text, self.log)
            if found:
                return found
            time.sleep(0.01)
        raise AssertionError(f"{text!r} never came in {self.log!r}")

    def signal(self, number: int) -> None:
        os.kill(self.pid, number)

    def wait(self) -> subprocess.CompletedProcess[str]:
        """Wait for the end; the status is negative for a signal."""
        status = self._launcher.ask({"wait": self.pid})
        return subprocess.CompletedProcess([], status, self._out.read_text(), self._err.read_text())


class Launcher:
    """Runs the command line in processes forked from a warm one."""

    def __init__(self, folder: Path, **environment: str) -> None:
        self._folder = folder
        self._started = 0
        self._process = subprocess.Popen(
            [sys.executable, str(Path(__file__).with_name("launcher.py"))],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONPATH": str(_ROOT), **environment},
        )

    def ask(self, job: dict[str, Any]) -> int:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(job) + "\n")
        self._process.stdin.flush()
        return int(self._process.stdout.readline())

    def start(self, home: Home, *arguments: str, terminal: Path | None = None, **environment: str) -> Running:
        """Start the command line, with standard error to a file, or to a terminal."""
        self._started += 1
        out, err = (self._folder / f"{self._started}.{name}" for name in ("out", "err"))
        err = terminal or err
        job = {
            "arguments": list(arguments),
            "environment": environment,
            "folder": str(home.folder),
            "out": str(out),
            "err": str(err),
        }
        err.touch()
        return Running(self, self.ask(job), out, err)

    def call(self, home: Home, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
        """Run the command line to its end."""
        return self.start(home, *arguments, **environment).wait()

    def close(self) -> None:
        self._process.communicate(timeout=60)


@pytest.fixture(scope="session")
def launcher(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Launcher]:
    """One warm process for all the tests that start daemons."""
    started = Launcher(tmp_path_factory.mktemp("launcher"))
    yield started
    started.close()


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Home:
    """An empty home, in which the test works."""
    monkeypatch.chdir(tmp_path)
    return Home(tmp_path)


@pytest.fixture
def homes(tmp_path: Path) -> Callable[[str], Home]:
    """Several homes, by name."""

    def make(name: str) -> Home:
        folder = tmp_path / name
        folder.mkdir()
        return Home(folder)

    return make


def write_stream(path: Path, records: int, seed: int = 0, bad: bool = True) -> None:
    """Write a CSV stream of two rings with, if asked for, every kind of record that is not learned."""
    draw = random.Random(seed)
    lines = ["a,b,color,y"]
    for _ in range(records):
        kind = draw.random() if bad else 1.0
        a, b = draw.gauss(0, 1), draw.gauss(0, 1)
        color = draw.choice(["red", "green", ""])
        label = "yes" if (a * a + b * b < 1.2) != (draw.random() < 0.05) else "no"
        if kind < 0.01:
            lines.append(f"{a:.6f},{b:.6f}")
        elif kind < 0.02:
            lines.append(f"inf,{b:.6f},{color},{label}")
        elif kind < 0.03:
            lines.append("")
        elif kind < 0.06:
            lines.append(f"{a:.6f},{b:.6f},{color},")
        elif kind < 0.09:
            lines.append(f",{b:.6f},{color},{label}")
        else:
            lines.append(f"{a:.6f},{b:.6f},{color},{label}")
    path.write_text("\n".join(lines) + "\n")


@pytest.fixture
def here(home: Home) -> Home:
    """A home with a short stream, in the working directory."""
    write_stream(home.folder / "stream.csv", 400)
    home.every_records = 200
    home.configure()
    return home


@pytest.fixture(scope="session")
def _trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    from streamkernel.daemon.assembly.plan import prepare
    from streamkernel.daemon.runtime import run

    home = Home(tmp_path_factory.mktemp("trained"))
    write_stream(home.folder / "stream.csv", 1000)
    with contextlib.chdir(home.folder):
        run(prepare(home.configure()), max_records=600)
    write_stream(home.folder / "other.csv", 400, seed=1)
    return home.folder


@pytest.fixture
def trained(home: Home, _trained: Path) -> Home:
    """A home in which a run has learned 600 records, and with a file of 400 others."""
    shutil.copytree(_trained, home.folder, dirs_exist_ok=True)
    return home
