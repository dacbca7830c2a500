"""The units of systemd: systemd finds nothing wrong with them, and they confine the daemon as far as it bears."""

from __future__ import annotations

import re
import subprocess
import sys
from configparser import RawConfigParser
from pathlib import Path

import pytest

from tests.daemon.conftest import Home, write_stream
from tests.deploy.programs import CONFIGS, ROOT, checked, needed_program

pytestmark = pytest.mark.usefixtures("processes")

FOLDER = CONFIGS / "systemd"
UNITS = {"streamkernel.service": "streamkernel.service", "streamkernel@.service": "streamkernel@shop.service"}
# As systemd 252 counts, in tenths; the rest is mostly network, a filter of addresses, and what numba needs.
EXPOSURE = 16


class Sections(RawConfigParser):
    """The assignments of a unit by section; of several of one name the last."""

    def __init__(self, path: Path) -> None:
        super().__init__(strict=False, delimiters=["="], interpolation=None)
        self.read(path)

    def optionxform(self, optionstr: str) -> str:
        return optionstr


@pytest.fixture
def analyze() -> str:
    return needed_program("systemd-analyze", "systemd")


def installed(unit: str, folder: Path, bin_folder: Path) -> Path:
    """Put a unit into a folder as an instance, with a program that is there."""
    program = bin_folder / "streamkernel"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    path = folder / UNITS[unit]
    text = (FOLDER / unit).read_text()
    assert "/opt/streamkernel/bin/" in text
    path.write_text(text.replace("/opt/streamkernel/bin/", f"{bin_folder}/"))
    return path


@pytest.mark.parametrize("unit", UNITS)
def test_systemd_finds_nothing_wrong(unit: str, analyze: str, tmp_path: Path) -> None:
    assert checked(analyze, "verify", str(installed(unit, tmp_path, tmp_path))) == ""


@pytest.mark.parametrize("unit", UNITS)
def test_the_daemon_is_confined(unit: str, analyze: str, tmp_path: Path) -> None:
    path = installed(unit, tmp_path, tmp_path)
    said = checked(analyze, "security", "--offline=true", f"--threshold={EXPOSURE}", "--no-pager", str(path))
    assert re.search(r"Overall exposure level for .*: [\d.]+ OK", said)


def test_the_user_is_one_that_sysusers_makes(tmp_path: Path) -> None:
    program = needed_program("systemd-sysusers", "systemd")
    (tmp_path / "etc/sysusers.d").mkdir(parents=True)
    (tmp_path / "etc/sysusers.d/streamkernel.conf").write_bytes((FOLDER / "sysusers.conf").read_bytes())
    checked(program, f"--root={tmp_path}", "streamkernel.conf")
    name, *_, home, shell = (tmp_path / "etc/passwd").read_text().strip().split(":")
    service = Sections(FOLDER / "streamkernel.service")["Service"]
    assert name == service["User"] == service["Group"]
    assert home == f"/var/lib/{service['StateDirectory']}"
    assert shell.endswith("nologin")


@pytest.mark.parametrize("unit", UNITS)
def test_what_the_daemon_promises_to_its_supervisor(unit: str) -> None:
    service = Sections(FOLDER / unit)["Service"]
    assert (service["Type"], service["NotifyAccess"]) == ("notify", "main")
    assert service["RestartPreventExitStatus"] == "2"  # of a configuration that cannot be
    assert int(service["TimeoutStopSec"]) > 10  # in which the daemon ends
    assert service["MemoryDenyWriteExecute"] == "no"  # machine code is made at run time
    assert service["Environment"] == "NUMBA_CACHE_DIR=%C/streamkernel"
    assert service["CacheDirectory"] == "streamkernel"


def test_the_template_is_the_unit_for_several_configurations() -> None:
    one, several = (Sections(FOLDER / unit) for unit in UNITS)
    differing = {
        key for section in one.sections() for key in one[section] if one[section][key] != several[section].get(key)
    }
    assert differing == {"Description", "ExecStart", "StateDirectory", "WorkingDirectory", "EnvironmentFile"}
    assert one.sections() == several.sections()
    assert all(one[section].keys() == several[section].keys() for section in one.sections())


def calls_of(name: str, analyze: str) -> set[str]:
    """The system calls of a set such as @system-service, with those of the sets it is made of."""
    lines = map(str.strip, checked(analyze, "syscall-filter", "--no-pager", name).splitlines())
    members = [line for line in lines if line and not line.startswith("#") and line != name]
    return {call for one in members for call in (calls_of(one, analyze) if one.startswith("@") else {one})}


@pytest.mark.long
@pytest.mark.skipif(sys.platform != "linux", reason="traces system calls")
def test_the_daemon_makes_no_call_that_the_unit_forbids(analyze: str, tmp_path: Path) -> None:
    """As strace sees them: imports, compiling into an empty cache, the server, learning, checkpoints and outputs."""
    strace = needed_program("strace", "strace")
    allowed = calls_of("@system-service", analyze) - calls_of("@privileged", analyze)
    home = Home(tmp_path)
    write_stream(tmp_path / "stream.csv", 1000)
    home.configure(metrics={"port": 0})
    cache = {"NUMBA_CACHE_DIR": str(tmp_path / "cache"), "PYTHONPATH": str(ROOT)}
    run = (sys.executable, "-m", "streamkernel", "run", str(home.config))
    log = tmp_path / "calls"
    done = subprocess.run(
        [strace, "-f", "-qq", "-o", str(log), *run],
        cwd=tmp_path,
        env=home.environment(**cache),
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    lines = log.read_text(errors="replace")
    families = Sections(FOLDER / "streamkernel.service")["Service"]["RestrictAddressFamilies"].split()
    assert set(re.findall(r"socket\((AF_\w+)", lines)) <= set(families)
    made = set(re.findall(r"^\d+ +(\w+)\(", lines, re.MULTILINE))
    assert {"fsync", "listen", "mprotect"} <= made
    assert made - allowed == set()
